// The caller's description of a save, checked.
#include "checkpoint/capi/save_desc.h"

namespace quern::checkpoint::capi {
Status read_save_desc(const quern_checkpoint_save_desc& desc, SaveOptions& options, Preset& preset, Report& report) {
  if (desc.replace > 1 || desc.reserved != 0)
    return fail(report, StatusCode::invalid_argument, "replace must be 0 or 1, and reserved members 0");
  if (desc.step == QUERN_CHECKPOINT_NEWEST)
    return fail(report, StatusCode::invalid_argument, "a step must be below 2^64 - 1");
  if (desc.zstd_level < 0 || desc.zstd_level > 19)
    return fail(report, StatusCode::invalid_argument, "zstd_level must be 0 to 19");
  const std::string_view name = desc.preset == nullptr ? "exact" : desc.preset;
  const auto known = parse_preset(name);
  if (!known) return fail(report, StatusCode::unknown_setting, join({"there is no preset '", name, "'"}));
  preset = *known;
  options.step = desc.step;
  if (desc.base == QUERN_CHECKPOINT_BASE_NEWEST) {
    options.base_newest = true;
  } else if (desc.base != QUERN_CHECKPOINT_NO_BASE) {
    options.base = desc.base;
  }
  if (desc.tag_count != 0 && (desc.tag_names == nullptr || desc.tag_texts == nullptr))
    return fail(report, StatusCode::invalid_argument, "tags need names and texts");
  for (std::uint64_t i = 0; i < desc.tag_count; ++i) {
    if (desc.tag_names[i] == nullptr || desc.tag_texts[i] == nullptr)
      return fail(report, StatusCode::invalid_argument, "a tag's name or text is NULL");
    options.tags.push_back({desc.tag_names[i], desc.tag_texts[i]});
  }
  options.zstd_level = desc.zstd_level;
  options.parity_data = desc.parity_data;
  options.parity_files = desc.parity_files;
  if (desc.group != nullptr) options.group = desc.group;
  options.writer = desc.writer;
  options.writers = desc.writers;
  options.replace = desc.replace == 1;
  return {};
}

Status read_rules(const quern_checkpoint_save_desc& desc, Policy& policy, std::optional<ReplayRule>& replay,
                  Report& report) {
  // A text that is no JSON is a wrong argument here, not damage.
  const auto refused = [&](std::string_view member, const Status& status) {
    const Status told = fail_at(report, member, status);
    return status.code() == StatusCode::corrupt ? fail(report, StatusCode::invalid_argument, report.problem) : told;
  };
  if (desc.policy != nullptr) {
    auto parsed = parse_policy(desc.policy, report);
    if (!parsed.ok()) return refused("policy", parsed.status());
    policy = std::move(parsed).value();
  }
  if (desc.replay != nullptr) {
    auto parsed = parse_replay_rule(desc.replay, report);
    if (!parsed.ok()) return refused("replay", parsed.status());
    replay = std::move(parsed).value();
    if (!replay->numbers.step) replay->numbers.step = desc.step;
    ReplayRule complete = *replay;  // a program has no files whose metadata could say the rate
    if (const Status status = complete_rule(complete, {}, desc.step, report); !status.ok())
      return fail(report, status.code(), "replay: 'lr', the step's learning rate, is missing");
  }
  const bool has_rate = replay && replay->numbers.rate.value_or(0) > 0;
  for (const PolicyRule& rule : policy.rules)
    if (rule.treatment == Treatment::ebq && rule.unit == BoundUnit::rates && !has_rate)
      return fail(report, StatusCode::invalid_argument,
                  "policy: a bound in the unit rate needs the learning rate: give it as 'lr' of replay");
  return {};
}

}  // namespace quern::checkpoint::capi

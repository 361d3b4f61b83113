// The caller's description of a save, checked.
#include "checkpoint/capi/save_desc.h"

#include "checkpoint/checkpoint_files.h"

namespace quern::checkpoint::capi {
namespace {

Status read_preset(const char* name, Report& report) {
  const std::string_view given = name == nullptr ? "exact" : name;
  const auto preset = parse_preset(given);
  if (!preset) return fail(report, StatusCode::unknown_setting, join({"there is no preset '", given, "'"}));
  if (*preset != Preset::exact)
    return fail(report, StatusCode::unsupported,
                "this quern has lossless modes for checkpoints only: use the preset exact");
  return {};
}

}  // namespace

Status read_save_desc(const quern_checkpoint_save_desc& desc, SaveOptions& options, Report& report) {
  if (desc.replace > 1 || desc.reserved != 0)
    return fail(report, StatusCode::invalid_argument, "replace must be 0 or 1, and reserved members 0");
  if (desc.step == QUERN_CHECKPOINT_NEWEST)
    return fail(report, StatusCode::invalid_argument, "a step must be below 2^64 - 1");
  if (desc.zstd_level < 0 || desc.zstd_level > 19)
    return fail(report, StatusCode::invalid_argument, "zstd_level must be 0 to 19");
  QUERN_RETURN_IF_ERROR(read_preset(desc.preset, report));
  options.step = desc.step;
  if (desc.base != QUERN_CHECKPOINT_NO_BASE) options.base = desc.base;
  options.zstd_level = desc.zstd_level;
  options.parity_data = desc.parity_data;
  options.parity_files = desc.parity_files;
  if (desc.group != nullptr) options.group = desc.group;
  options.writer = desc.writer;
  options.writers = desc.writers;
  options.replace = desc.replace == 1;
  return {};
}

}  // namespace quern::checkpoint::capi

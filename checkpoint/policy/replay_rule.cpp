// Reading rules of optimizers.
#include "checkpoint/policy/replay_rule.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "checkpoint/policy/roles.h"

namespace quern::checkpoint {
namespace {

using Kind = JsonValue::Kind;

class RuleReader {
 public:
  void read(const JsonValue& root, ReplayRule& rule) {
    require(root.is(Kind::object), "it is not an object");
    for (const JsonValue& item : root.items) {
      if (item.key == "optimizer") {
        require(item.is(Kind::text) && (item.text == "adamw" || item.text == "adam"),
                "'optimizer' must be adamw or adam");
        rule.decay_kind = item.text == "adam" ? kernels::AdamDecay::coupled : kernels::AdamDecay::decoupled;
      } else if (item.key == "order") {
        require(item.is(Kind::text) && (item.text == "fused" || item.text == "separate"),
                "'order' must be fused or separate");
        rule.order = item.text == "separate" ? kernels::AdamOrder::separate : kernels::AdamOrder::fused;
      } else if (item.key == "bias_correction") {
        require(item.is(Kind::truth), "'bias_correction' must be true or false");
        rule.correct_bias = item.number != 0;
      } else if (item.key == "groups") {
        require(item.is(Kind::array), "'groups' must be a list");
        for (const JsonValue& one : item.items) rule.groups.push_back(read_group(one));
      } else if (!read_number(item, rule.numbers)) {
        unknown(item);
      }
    }
  }
  const String& problem() const { return problem_; }

 private:
  void require(bool holds, std::string_view what) {
    if (!holds && problem_.empty()) problem_ = what;
  }
  void unknown(const JsonValue& item) { require(false, join({"'", item.key, "' is not known"})); }
  double real(const JsonValue& item, bool fits) {
    require((item.is(Kind::number) || item.is(Kind::real)) && std::isfinite(item.real) && fits,
            join({"'", item.key, "' is no number that a step can have"}));
    return item.real;
  }
  std::size_t rank(const JsonValue& item) {
    require(item.is(Kind::number) && item.number <= kMaxRank, join({"'", item.key, "' must be 0 to 8"}));
    return static_cast<std::size_t>(item.number);
  }
  /// False for a member that is none of the numbers.
  bool read_number(const JsonValue& item, ReplayNumbers& numbers) {
    const double x = item.real;
    if (item.key == "lr") {
      numbers.rate = real(item, x >= 0);
    } else if (item.key == "betas") {
      require(item.is(Kind::array) && item.items.size() == 2, "'betas' must be two numbers");
      if (problem_.empty()) {
        numbers.beta1 = real(item.items[0], item.items[0].real >= 0 && item.items[0].real < 1);
        numbers.beta2 = real(item.items[1], item.items[1].real >= 0 && item.items[1].real < 1);
      }
    } else if (item.key == "eps") {
      numbers.epsilon = real(item, x >= 0);
    } else if (item.key == "weight_decay") {
      numbers.decay = real(item, x >= 0);
    } else if (item.key == "clip_scale") {
      numbers.clip = real(item, x > 0);
    } else if (item.key == "step") {
      require(item.is(Kind::number) && item.number >= 1, "'step' must be a whole number from 1 on");
      numbers.step = item.number;
    } else {
      return false;
    }
    return true;
  }
  ReplayGroup read_group(const JsonValue& value) {
    ReplayGroup group;
    require(value.is(Kind::object), "a member of 'groups' is not an object");
    for (const JsonValue& item : value.items) {
      if (item.key == "name") {
        require(item.is(Kind::text), "'name' must be a text");
        group.name = item.text;
      } else if (item.key == "min_rank") {
        group.min_rank = rank(item);
      } else if (item.key == "max_rank") {
        group.max_rank = rank(item);
      } else if (!read_number(item, group.numbers)) {
        unknown(item);
      }
    }
    return group;
  }

  String problem_;
};

const String* find(const Vector<const Metadata*>& metadata, std::string_view key) {
  for (const Metadata* const one : metadata)
    for (const auto& [name, text] : *one)
      if (name == key) return &text;
  return nullptr;
}

/// A whole text as a finite number that is not negative.
std::optional<double> parse_positive(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(value) || value < 0)
    return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> learning_rate(const Vector<const Metadata*>& metadata) {
  const String* const text = find(metadata, "lr");
  return text == nullptr ? std::nullopt : parse_positive(*text);
}

Result<ReplayRule> parse_replay_rule(std::string_view text, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const JsonValue root,
                         parse_json(text, JsonLimits{.depth = 4, .values = 1 << 16, .settings = true}, report));
  ReplayRule rule;
  RuleReader reader;
  reader.read(root, rule);
  if (!reader.problem().empty()) return fail(report, StatusCode::invalid_argument, reader.problem());
  if (!rule.numbers.beta1) return fail(report, StatusCode::invalid_argument, "'betas' is missing");
  return rule;
}

Status complete_rule(ReplayRule& rule, const Vector<const Metadata*>& metadata, std::uint64_t step, Report& report) {
  const auto take = [&](const char* key, std::optional<double>& number) -> Status {
    const String* const text = find(metadata, key);
    if (number || text == nullptr) return {};
    number = parse_positive(*text);
    if (!number)
      return fail(report, StatusCode::invalid_argument,
                  join({"the files' metadata say '", key, "': '", *text, "', which is no number for a step"}));
    return {};
  };
  QUERN_RETURN_IF_ERROR(take("lr", rule.numbers.rate));
  QUERN_RETURN_IF_ERROR(take("clip_scale", rule.numbers.clip));
  if (!rule.numbers.step) {
    rule.numbers.step = step;
    if (const String* const text = find(metadata, "step")) {
      std::uint64_t value = 0;
      const auto read = std::from_chars(text->data(), text->data() + text->size(), value);
      if (read.ec == std::errc() && read.ptr == text->data() + text->size()) rule.numbers.step = value;
    }
  }
  const bool in_groups = !rule.groups.empty() && std::all_of(rule.groups.begin(), rule.groups.end(),
                                                             [](const auto& g) { return g.numbers.rate.has_value(); });
  if (!rule.numbers.rate && !in_groups)
    return fail(report, StatusCode::invalid_argument,
                "the step's learning rate is neither in the rule ('lr') nor in the files' metadata");
  return {};
}

codec::tensor::AdamSettings replay_settings(const ReplayRule& rule, std::string_view weight, std::size_t rank) {
  ReplayNumbers own;
  const auto group = std::find_if(rule.groups.begin(), rule.groups.end(), [&](const ReplayGroup& g) {
    return rank >= g.min_rank && rank <= g.max_rank && (g.name.empty() || glob_matches(g.name, weight));
  });
  if (group != rule.groups.end()) own = group->numbers;
  const ReplayNumbers& all = rule.numbers;
  const auto pick = [](const auto& first, const auto& second, auto otherwise) {
    return first ? *first : second.value_or(otherwise);
  };
  codec::tensor::AdamSettings out;
  out.order = rule.order;
  out.decay_kind = rule.decay_kind;
  out.correct_bias = rule.correct_bias;
  out.rate = pick(own.rate, all.rate, 0.0);
  out.beta1 = pick(own.beta1, all.beta1, 0.9);
  out.beta2 = pick(own.beta2, all.beta2, 0.999);
  out.epsilon = pick(own.epsilon, all.epsilon, 1e-8);
  out.decay = pick(own.decay, all.decay, 0.0);
  out.clip = static_cast<float>(pick(own.clip, all.clip, 1.0));
  out.step = pick(own.step, all.step, std::uint64_t{1});
  return out;
}

}  // namespace quern::checkpoint

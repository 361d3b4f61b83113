// Rules: the presets' and those of a file.
#include "checkpoint/policy/policy.h"

#include <algorithm>

namespace quern::checkpoint {
namespace {

using Kind = JsonValue::Kind;

constexpr std::pair<std::string_view, Preset> kPresets[] = {{"exact", Preset::exact},
                                                            {"moments", Preset::moments},
                                                            {"balanced", Preset::balanced},
                                                            {"archive", Preset::archive}};
constexpr const char* kTreatments[] = {"exact", "ebq", "updq", "logq", "blk8", "blk4", "derived"};
constexpr std::pair<std::string_view, BoundUnit> kUnits[] = {
    {"std", BoundUnit::deviations}, {"absolute", BoundUnit::absolute}, {"rate", BoundUnit::rates}};

/// Below this many values there is nothing to gain.
constexpr std::uint64_t kLeastMoments = 64;
/// Weights that are vectors (norms, biases) are worth their bits, and small matrices are few of them.
constexpr std::uint64_t kLeastWeights = 4096;

PolicyRule built_in(const char* role, Treatment treatment, double bound) {
  const bool weights = treatment == Treatment::ebq || treatment == Treatment::derived;
  PolicyRule rule;
  rule.role = role;
  rule.type = ElementType::f32;
  rule.min_rank = weights ? 2 : 0;
  rule.min_elems = weights ? kLeastWeights : kLeastMoments;
  rule.treatment = treatment;
  rule.bound = bound;
  return rule;
}

bool is_bound(Treatment treatment, double bound) {
  switch (treatment) {
    case Treatment::ebq: return bound > 0 && bound < 1e30;
    case Treatment::updq: return bound >= 0x1p-20 && bound <= 4;
    case Treatment::logq: return bound >= 0x1p-10 && bound <= 4;
    default: return bound == 0;
  }
}

/// Reads one rule; the first thing that is wrong is kept.
class RuleReader {
 public:
  explicit RuleReader(const JsonValue& value) : value_(value) {}

  PolicyRule read() {
    PolicyRule rule;
    bool has_mode = false;
    double bound = 0;
    for (const JsonValue& item : value_.items) {
      if (item.key == "name") {
        rule.name = text(item);
      } else if (item.key == "role") {
        rule.role = text(item);
      } else if (item.key == "dtype") {
        rule.type = parse_element(text(item));
        if (!rule.type) refuse(item, "is no element type, such as F32");
      } else if (item.key == "min_rank") {
        rule.min_rank = static_cast<std::size_t>(whole(item));
      } else if (item.key == "max_rank") {
        rule.max_rank = static_cast<std::size_t>(whole(item));
      } else if (item.key == "min_elements") {
        rule.min_elems = whole(item);
      } else if (item.key == "max_elements") {
        rule.max_elems = whole(item);
      } else if (item.key == "mode") {
        const auto* const found = std::find(std::begin(kTreatments), std::end(kTreatments), text(item));
        if (found == std::end(kTreatments)) {
          refuse(item, "must be exact, ebq, updq, logq, blk8, blk4 or derived");
        } else {
          rule.treatment = static_cast<Treatment>(found - std::begin(kTreatments));
        }
        has_mode = true;
      } else if (item.key == "bound") {
        if (!item.is(Kind::number) && !item.is(Kind::real)) refuse(item, "must be a number");
        bound = item.real;
      } else if (item.key == "unit") {
        const String name = text(item);
        const auto* const found =
            std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& unit) { return unit.first == name; });
        if (found == std::end(kUnits)) {
          refuse(item, "must be std, absolute or rate");
        } else {
          rule.unit = found->second;
        }
        has_unit_ = true;
      } else {
        refuse(item, "is not known");
      }
    }
    rule.bound = bound;
    if (problem_.empty() && !value_.is(Kind::object)) problem_ = "is not an object";
    if (problem_.empty() && !has_mode) problem_ = "has no mode";
    if (problem_.empty() && has_unit_ && rule.treatment != Treatment::ebq)
      problem_ = "only ebq has units to choose from";
    if (problem_.empty() && !is_bound(rule.treatment, rule.bound))
      problem_ = join({"the bound of ", treatment_name(rule.treatment),
                       rule.treatment == Treatment::ebq    ? " must be above 0"
                       : rule.treatment == Treatment::updq ? " must be 1e-6 to 4"
                       : rule.treatment == Treatment::logq ? " must be 0.001 to 4"
                                                           : " does not exist"});
    return rule;
  }
  const String& problem() const { return problem_; }

 private:
  void refuse(const JsonValue& item, const char* what) {
    if (problem_.empty()) problem_ = join({"'", item.key, "' ", what});
  }
  String text(const JsonValue& item) {
    if (!item.is(Kind::text)) refuse(item, "must be a text");
    return item.text;
  }
  std::uint64_t whole(const JsonValue& item) {
    if (!item.is(Kind::number)) refuse(item, "must be a whole number");
    return item.number;
  }

  const JsonValue& value_;
  String problem_;
  bool has_unit_ = false;
};

Status read_roles(const JsonValue& list, Policy& policy, Report& report) {
  for (const JsonValue& item : list.items) {
    const JsonValue* const name = item.find("name");
    const JsonValue* const role = item.find("role");
    if (!item.is(Kind::object) || item.items.size() != 2 || name == nullptr || role == nullptr ||
        !name->is(Kind::text) || !role->is(Kind::text))
      return fail(report, StatusCode::invalid_argument, "a member of 'roles' is not {\"name\": GLOB, \"role\": ROLE}");
    policy.roles.emplace_back(name->text, role->text);
  }
  return {};
}

}  // namespace

std::optional<Preset> parse_preset(std::string_view name) {
  for (const auto& [known, preset] : kPresets)
    if (name == known) return preset;
  return std::nullopt;
}

const char* treatment_name(Treatment treatment) { return kTreatments[static_cast<std::size_t>(treatment)]; }

std::optional<Mode> mode_of(Treatment treatment) {
  switch (treatment) {
    case Treatment::ebq: return Mode::ebq;
    case Treatment::updq: return Mode::updq;
    case Treatment::logq: return Mode::logq;
    case Treatment::blk8: return Mode::blk8;
    case Treatment::blk4: return Mode::blk4;
    default: return std::nullopt;
  }
}

Policy preset_policy(Preset preset) {
  Policy out;
  if (preset == Preset::exact) return out;
  const bool archive = preset == Preset::archive;
  const double log_bound = archive ? .1 : .05;
  for (const char* const role : {"exp_avg_sq", "max_exp_avg_sq", "second_moment"})
    out.rules.push_back(built_in(role, Treatment::logq, log_bound));
  // A norm and no square: the same for the update is half as much in the logarithm of its root.
  out.rules.push_back(built_in("exp_inf", Treatment::logq, log_bound / 2));
  out.rules.push_back(built_in("exp_avg", Treatment::updq, archive ? .2 : .05));
  if (preset == Preset::moments) return out;
  out.rules.push_back(built_in("param", Treatment::ebq, archive ? 1e-2 : 1e-3));
  for (const ElementType type : {ElementType::bf16, ElementType::f16}) {
    PolicyRule copy = built_in("param", Treatment::derived, 0);
    copy.type = type;
    out.rules.push_back(std::move(copy));
  }
  return out;
}

Result<Policy> parse_policy(std::string_view text, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const JsonValue root,
                         parse_json(text, JsonLimits{.depth = 4, .values = 1 << 16, .settings = true}, report));
  const auto refuse = [&](String sentence) { return fail(report, StatusCode::invalid_argument, std::move(sentence)); };
  if (!root.is(Kind::object)) return refuse("it is not an object with rules");
  Policy out;
  Preset preset = Preset::exact;
  for (const JsonValue& member : root.items) {
    if (member.key == "preset" && member.is(Kind::text)) {
      const auto found = parse_preset(member.text);
      if (!found) return refuse(join({"preset '", member.text, "' is none of exact, moments, balanced, archive"}));
      preset = *found;
    } else if (member.key == "roles" && member.is(Kind::array)) {
      QUERN_RETURN_IF_ERROR(read_roles(member, out, report));
    } else if (member.key == "rules" && member.is(Kind::array)) {
      for (std::size_t i = 0; i < member.items.size(); ++i) {
        RuleReader reader(member.items[i]);
        PolicyRule rule = reader.read();
        if (!reader.problem().empty()) return refuse(join({"rule ", decimal(i + 1), ": ", reader.problem()}));
        out.rules.push_back(std::move(rule));
      }
    } else {
      return refuse(join({"'", member.key, "' is not known, or not what it should be"}));
    }
  }
  for (PolicyRule& rule : preset_policy(preset).rules) out.rules.push_back(std::move(rule));
  return out;
}

const PolicyRule* rule_for(const Policy& policy, const PolicySubject& subject) {
  const std::size_t rank = subject.what.shape.rank();
  const std::uint64_t elems = subject.what.elems();
  for (const PolicyRule& rule : policy.rules) {
    if (!rule.name.empty() && !glob_matches(rule.name, subject.name)) continue;
    if (!rule.role.empty() && !glob_matches(rule.role, subject.role)) continue;
    if (rule.type && *rule.type != subject.what.type) continue;
    if (rank < rule.min_rank || rank > rule.max_rank || elems < rule.min_elems || elems > rule.max_elems) continue;
    return &rule;
  }
  return nullptr;
}

}  // namespace quern::checkpoint

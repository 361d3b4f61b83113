// Which tensor is stored how: ordered rules on name, role, type and size, read from JSON or built in as presets.
#pragma once

#include "checkpoint/policy/roles.h"
#include "checkpoint/safetensors/json.h"
#include "checkpoint/store/manifest.h"

namespace quern::checkpoint {

/// What to save under which promise: rules that are built in.
enum class Preset {
  exact,     ///< every bit
  moments,   ///< weights exact, updq 0.05, logq 0.05 (of exp_inf half of it)
  balanced,  ///< the same, and weights ebq 0.001 standard deviations
  archive,   ///< ebq 0.01 standard deviations, updq 0.2, logq 0.1
};
std::optional<Preset> parse_preset(std::string_view name);

/// How a tensor is stored.
enum class Treatment : std::uint8_t { exact, ebq, updq, logq, blk8, blk4, derived };

/// ebq's bound is in standard deviations, absolute, or in learning rates.
enum class BoundUnit : std::uint8_t { deviations, absolute, rates };

struct PolicyRule {
  // Conditions; all must hold. Texts that are empty hold always.
  String name;  ///< glob
  String role;  ///< glob
  std::optional<ElementType> type;
  std::size_t min_rank = 0;  ///< axes, of the whole tensor where a piece is saved
  std::size_t max_rank = kMaxRank;
  std::uint64_t min_elems = 0;
  std::uint64_t max_elems = UINT64_MAX;
  // What follows.
  Treatment treatment = Treatment::exact;
  double bound = 0;
  BoundUnit unit = BoundUnit::deviations;  ///< ebq alone
};

/// The first rule that holds decides; without one a tensor is exact.
struct Policy {
  Vector<PolicyRule> rules;
  RoleRules roles;
};

const char* treatment_name(Treatment treatment);
/// The modes behind a treatment; nothing for exact and derived.
std::optional<Mode> mode_of(Treatment treatment);

Policy preset_policy(Preset preset);

/// {"preset":NAME,"roles":[{"name":GLOB,"role":ROLE},...],"rules":[{"name":GLOB,"role":GLOB,"dtype":"F32","min_rank":N,
/// "max_rank":N,"min_elements":N,"max_elements":N,"mode":MODE,"bound":X,"unit":UNIT},...]}; every member but mode may
/// be left out, and the preset's rules come last. The sentence of a failure does not name the file.
Result<Policy> parse_policy(std::string_view text, Report& report);

/// A tensor as far as a policy is concerned.
struct PolicySubject {
  std::string_view name;
  std::string_view role;
  TensorDescription what;
};
/// The rule for a tensor, or null.
const PolicyRule* rule_for(const Policy& policy, const PolicySubject& subject);

}  // namespace quern::checkpoint

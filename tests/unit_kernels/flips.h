// Hardware faults, made on purpose: bits that flip in registers and in memory while compiled code runs. The code
// runs one instruction at a time under the trap flag of x86-64. Where a flip is planned, a copy of the process (fork)
// takes it and runs on at full speed; its exit status tells what came of it. So one slow run serves all flips.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace quern::kernels::testing {

enum class FlipTarget : std::uint8_t { general_register, flags, vector_register, stack, scratch, stored, values };
inline constexpr std::size_t kFlipTargets = 7;

/// What came of a flip. A process that crashed or did not end was loud.
enum class FlipOutcome : std::uint8_t { harmless, detected, loud, silent };
inline constexpr std::size_t kFlipOutcomes = 4;

struct Flip {
  std::uint64_t step = 0;  ///< after so many instructions
  FlipTarget target = FlipTarget::general_register;
  std::uint64_t random = 0;  ///< chooses the place and the bit
};

/// Counts of outcomes, by stage and target.
class FlipTally {
 public:
  void add(std::size_t stage, FlipTarget target, FlipOutcome outcome) {
    ++counts_[stage][static_cast<std::size_t>(target)][static_cast<std::size_t>(outcome)];
  }
  std::uint64_t all() const;
  std::uint64_t silent() const;
  /// A line for each stage and target.
  std::string table(std::span<const char* const> stages) const;

 private:
  static constexpr std::size_t kStages = 4;
  std::array<std::array<std::array<std::uint64_t, kFlipOutcomes>, kFlipTargets>, kStages> counts_{};
};

/// What the stepped code tells of itself.
struct FlipScene {
  std::array<std::span<std::uint8_t>, 3> memory;  ///< scratch, stored, values: where flips of these targets go
  /// Stages may close a target: memory that is the caller's again.
  volatile std::uint8_t stage = 0;
  volatile bool values_open = false;
};

/// Why code cannot run one instruction at a time here; empty where it can.
std::string why_no_flips();

/// Runs `code` by single instructions and makes the flips, whose steps ascend; those behind the end are not made. In
/// each copy of the process `code` runs on with its flip, then `verdict` is called and the copy ends. In the process
/// itself `code` runs as it is.
void run_with_flips(FlipScene& scene, std::span<const Flip> flips, const std::function<void()>& code,
                    const std::function<FlipOutcome()>& verdict, FlipTally& tally);

/// `count` flips in `targets` at random steps up to `steps`.
std::vector<Flip> plan_flips(std::uint64_t steps, std::size_t count, std::span<const FlipTarget> targets,
                             std::uint64_t seed);

}  // namespace quern::kernels::testing

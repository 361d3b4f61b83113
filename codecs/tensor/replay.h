// Replay: a parameter and its two moments, one step of Adam after a base checkpoint, are what the stored gradient makes
// of the base. Three tensors are restored by one call; beside the gradient (a tensor of its own, coded by planes) some
// hundred bytes are stored: the rule with all of its constants, and the hash of each result, which must match.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/tensor/description.h"
#include "kernels/tensor/cpu/adam.h"

namespace quern::codec::tensor {

/// A step as trainers describe it.
struct AdamSettings {
  kernels::AdamOrder order = kernels::AdamOrder::fused;
  kernels::AdamDecay decay_kind = kernels::AdamDecay::decoupled;
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0;
  float clip = 1;          ///< the gradient is multiplied by this
  std::uint64_t step = 1;  ///< of the state *after* the step, from 1
  bool correct_bias = true;
};

/// The constants of a step, each computed in binary64 and rounded once. beta^step is computed by products in twice
/// binary64's precision, so that it does not depend on a mathematical library.
kernels::AdamRule make_adam_rule(const AdamSettings& settings);

/// The three tensors of one parameter: binary32, same shape, host memory at any address.
struct OptimizerState {
  std::span<const std::uint8_t> weight;
  std::span<const std::uint8_t> exp_avg;
  std::span<const std::uint8_t> exp_avg_sq;
};
struct MutableOptimizerState {
  std::span<std::uint8_t> weight;
  std::span<std::uint8_t> exp_avg;
  std::span<std::uint8_t> exp_avg_sq;
};

struct ReplayGradient {
  std::span<const std::uint8_t> values;  ///< decoded, same shape
  ElementType type = ElementType::bf16;  ///< bf16 or f32
};

/// The side of a group whose state after the step is `result`: bit for bit what the rule makes of base and gradient,
/// else `unsupported` (another rule or order was used in training, a NaN is about) and the caller takes other modes.
/// `description` is that of the parameter.
Result<Vector<std::uint8_t>> plan_replay(const TensorDescription& description, const kernels::AdamRule& rule,
                                         const OptimizerState& base, const ReplayGradient& gradient,
                                         const OptimizerState& result, TaskRunner& runner);

/// Restores a group into `out`, which may be the memory of `base` itself. `checksum_mismatch` when the result is not
/// the one that was planned (a base or gradient that is not the right one): `out` is then of no use.
Status replay_group(const TensorDescription& description, std::span<const std::uint8_t> side,
                    const OptimizerState& base, const ReplayGradient& gradient, const MutableOptimizerState& out,
                    TaskRunner& runner);

/// The rule that a side holds; `corrupt` when it is none.
Result<kernels::AdamRule> replay_rule(std::span<const std::uint8_t> side);

}  // namespace quern::codec::tensor

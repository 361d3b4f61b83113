// Sums of products of networks on a CPU: the one loop that has a form for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"

namespace quern::kernels {

/// Rows of weights that stand side by side in memory.
inline constexpr std::size_t kProductRows = 8;

struct NetworkKernels {
  /// sums[p * rows + r] = bias[r] + sum over k of inputs[p * 2 * pairs + k] * weight k of row r, for p < places and
  /// r < rows, a multiple of kProductRows. The weight is at weights[((r / 8 * pairs + k / 2) * 8 + r % 8) * 2 + k % 2].
  /// No sum overflows in any order (check_network). All in host memory, the caller's; none overlap.
  void (*products)(const std::int16_t* inputs, std::size_t places, std::size_t pairs, const std::int16_t* weights,
                   const std::int32_t* bias, std::size_t rows, std::int32_t* sums);
};

/// The kernels of an available instruction set.
const NetworkKernels& network_kernels(IsaLevel level);

}  // namespace quern::kernels

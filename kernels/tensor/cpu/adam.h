// Adam over arrays on the CPU, one set of entry points for each instruction set; all give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"
#include "kernels/tensor/adam.h"

namespace quern::kernels {

struct AdamKernels {
  /// Updates three arrays of `count` elements in place. Arrays do not overlap; any alignment.
  void (*step_f32)(const AdamRule& rule, const float* gradient, std::size_t count, float* weight, float* exp_avg,
                   float* exp_avg_sq);
  /// The same with gradients in bfloat16.
  void (*step_bf16)(const AdamRule& rule, const std::uint16_t* gradient, std::size_t count, float* weight,
                    float* exp_avg, float* exp_avg_sq);
};

/// The kernels of an available level.
const AdamKernels& adam_kernels(IsaLevel level);

}  // namespace quern::kernels

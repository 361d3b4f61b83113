// Entry points of the stencil kernels on the CPU: what of a row does not depend on the row itself, one set for each
// instruction set. All sets give the same numbers: sums are of integers that binary64 holds exactly, or in a fixed
// order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/lorenzo.h"

namespace quern::kernels {

/// Rows are read in blocks of this many elements: sources and results are that much longer than asked for.
inline constexpr std::size_t kStencilBlock = 16;
/// Samples in a block of normal equations; rows of samples are 64-byte aligned.
inline constexpr std::size_t kSampleBlock = 128;

struct StencilKernels {
  /// out[x] = sum over taps of weights[t] * sources[t][x] for x < count. All are integers, sums below 2^51.
  void (*tap_sums)(const double* const* sources, const double* weights, std::size_t taps, std::size_t count,
                   std::int64_t* out);
  /// out[x] = constant + sum over taps of weights[t] * sources[t][x], modulo 2^32.
  void (*context_sums)(const std::uint32_t* const* sources, const std::uint32_t* weights, std::size_t taps,
                       std::uint32_t constant, std::size_t count, std::uint32_t* out);
  /// Writes kStencilBlock samples into columns of `rows` (kSampleBlock apart), all times `unit`: sources[0],
  /// differences of the other sources to it, the difference of the targets to it; `left`: what of that `solution` does
  /// not explain.
  void (*sample_rows)(const double* const* sources, std::size_t taps, const std::int64_t* targets, double unit,
                      const double* solution, double* rows, double* left);
  /// sums[k * width + l] += sum over samples of sample_weights[s] * rows[k][s] * rows[l][s], l <= k < width; eight
  /// partial sums (s modulo 8) added pairwise.
  void (*normal_sums)(const double* rows, const double* sample_weights, std::size_t width, double* sums);
};

/// The kernels of an available level.
const StencilKernels& stencil_kernels(IsaLevel level);

}  // namespace quern::kernels

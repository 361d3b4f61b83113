// Entry points of the stencil kernels on the CPU: what of a row does not depend on the row itself, one set for each
// instruction set. All sets give the same numbers: sums are of integers that binary64 holds exactly, or in a fixed
// order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"
#include "kernels/entropy/cpu/residual_kernels.h"
#include "kernels/stencil/cpu/decode.h"
#include "kernels/stencil/cpu/edges.h"
#include "kernels/stencil/cpu/fit.h"
#include "kernels/stencil/cpu/rows.h"

namespace quern::kernels {

/// Rows are read in blocks of this many elements: sources and results are that much longer than asked for.
inline constexpr std::size_t kStencilBlock = 16;

/// Of the extremes that StencilKernels::range keeps.
inline constexpr std::size_t kRangeLanes = 16;

struct StencilKernels {
  /// out[x] = sum over taps of weights[t] * sources[t][x] for x < count. All are integers, sums below 2^51.
  void (*tap_sums)(const double* const* sources, const double* weights, std::size_t taps, std::size_t count,
                   std::int64_t* out);
  /// out[x] = constant + sum over taps of weights[t] * sources[t][x], modulo 2^32.
  void (*context_sums)(const std::uint32_t* const* sources, const std::uint32_t* weights, std::size_t taps,
                       std::uint32_t constant, std::size_t count, std::uint32_t* out);
  /// Takes the finite ones of numbers of binary32, given by their bits: kRangeLanes least and greatest ones, which
  /// began as infinities; returns how many are finite.
  std::uint64_t (*range)(const std::uint32_t* from, std::size_t count, float* low, float* high);
  /// out[x] = the binary32 whose bits are from[x * step], as binary64.
  void (*widen)(const std::uint32_t* from, std::size_t step, std::size_t count, double* out);
  /// after[x] = before[x] + (from[x] - before[x]) * weight, rounded to the nearest integer; all below 2^51. `after` may
  /// be `before`.
  void (*add_to_mean)(const double* from, const double* before, double weight, std::size_t count, double* after);
  /// out[x] = (originals[x] - base) * inverse as the nearest integer, 0 where that is not below 2^44.
  void (*units)(const double* originals, std::size_t count, double base, double inverse, std::int64_t* out);
  /// Ends a row of the closed loop: codes[x] = left[x] / 2^fraction_bits, rounded down, magnitudes[x] = |codes[x]|, at
  /// most `most`, values[x] = wholes[x], which are below 2^51. False when a code is beyond kMaxMagnitude;
  /// then what was written has no meaning.
  bool (*loop_codes)(const std::int64_t* left, const std::int64_t* wholes, unsigned fraction_bits, std::uint32_t most,
                     std::size_t count, double* values, std::uint32_t* magnitudes, std::int32_t* codes);
  /// True when all values[x] * unit + base, rounded to binary32 if `single`, differ from originals[x] by less than
  /// `strict`, and no original is 0.
  bool (*all_near)(const double* originals, const double* values, std::size_t count, double unit, double base,
                   double strict, bool single);
  /// Writes kStencilBlock samples into columns of `rows` (kSampleBlock apart), all times `unit`: sources[0],
  /// differences of the other sources to it, the difference of the targets to it; `left`: what of that `solution` does
  /// not explain.
  void (*sample_rows)(const double* const* sources, std::size_t taps, const std::int64_t* targets, double unit,
                      const double* solution, double* rows, double* left);
  /// sums[k * width + l] += sum over samples of sample_weights[s] * rows[k][s] * rows[l][s], l <= k < width; eight
  /// partial sums (s modulo 8) added pairwise.
  void (*normal_sums)(const double* rows, const double* sample_weights, std::size_t width, double* sums);
  StencilFitKernels fit;
  StencilDecodeKernels decode;
  StencilRowKernels rows;
  ResidualKernels residuals;
  EdgeKernels edges;
};

/// The kernels of an available level.
const StencilKernels& stencil_kernels(IsaLevel level);

}  // namespace quern::kernels

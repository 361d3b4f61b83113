// Entry points of the kernels that fits of the stencil codec need: blocks of kSampleBlock samples, a row of them for
// each feature, 64-byte aligned. Separately rounded IEEE operations in a fixed order: all instruction sets give the
// same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/stencil/cpu/rows.h"

namespace quern::kernels {

/// Samples in a block of normal equations.
inline constexpr std::size_t kSampleBlock = 128;

/// Of values that are kept in binary64, or narrow.
template <class Value>
struct ValueFitKernels {
  /// out[s] = (the sum over t < taps of weights[t] * rows[t][s]) * scale - mean[s], without the last where `mean` is
  /// null; for s < count.
  void (*feature)(const Value* const* rows, const double* weights, std::size_t taps, const double* mean, double scale,
                  std::size_t count, double* out);
  /// out[s] = values[s] - codes[s] * unit for s < count.
  void (*predictions)(const Value* values, const std::int32_t* codes, double unit, std::size_t count, double* out);
  /// sums[x] += what the source gives for predicted[x], for x < count.
  void (*add_distances)(const SpreadSource<Value>& spread, const double* predicted, double most, std::size_t count,
                        std::uint32_t* sums);
  /// out[s] = (the sum over t < taps of rows[t][s], which are below 2^31) * scale; for s < count.
  void (*magnitude_sums)(const MagnitudeOf<Value>* const* rows, std::size_t taps, float scale, std::size_t count,
                         float* out);
};

struct StencilFitKernels {
  ValueFitKernels<double> wide;
  ValueFitKernels<std::int32_t> narrow;
  /// out[s] = targets[s] * scale - mean[s] for s < count; targets are below 2^51.
  void (*differences)(const std::int64_t* targets, const double* mean, double scale, std::size_t count, double* out);
  /// left[s] = rows[count][s] - sum over features f < count of coefficients[f] * rows[f][s].
  void (*unexplained)(const double* rows, const double* coefficients, std::size_t count, double* left);
  /// Sum over a block of log2(1 + 4 left^2) / 2 in units of 2^-12 bits, straight between powers of two.
  std::uint32_t (*left_cost)(const double* left);
  /// weights[s] = 1 / (1 + 2 |left[s]|) for s < filled, 0 behind. Returns their sum.
  double (*left_weights)(const double* left, std::size_t filled, double* weights);
  /// rows[k][s] = block[k][s] for k < width; weights[s] = 1 / (e^2 + e) for s < filled, 0 behind, where e is the sum
  /// over k < width - 1 of expected[k] * rows[k][s], at least 0.02.
  void (*context_samples)(const float* block, std::size_t width, const double* expected, std::size_t filled,
                          double* rows, double* weights);
  /// Writes 16 samples into columns of `rows` (kSampleBlock apart): sources[t][s], which are below 2^31, for t < taps,
  /// 1, own[s]; and their weights 1 / (e^2 + e), where e is expected[taps] + the sum over t of expected[t] *
  /// sources[t][s], at least `least`.
  void (*magnitude_rows)(const std::uint32_t* const* sources, std::size_t taps, const std::uint32_t* own,
                         const double* expected, double least, double* rows, double* weights);
  /// Of `features` rows, then a row of magnitudes m and one of weights w: with e = constant + sum over f of
  /// expected[f] * rows[f][s], at least `least`, and v = w / (e (e + 1/2)), adds for each feature the sums of v m
  /// rows[f][s] and of v e rows[f][s] to sums[2f] and sums[2f + 1], and behind them those of v m and v e.
  void (*ratio_sums)(const float* rows, std::size_t features, const double* expected, double constant, double least,
                     double* sums);

  template <class Value>
  const ValueFitKernels<Value>& of() const {
    if constexpr (std::is_same_v<Value, double>) {
      return wide;
    } else {
      return narrow;
    }
  }
};

}  // namespace quern::kernels

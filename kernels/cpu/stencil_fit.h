// Entry points of the kernels that fits of the stencil codec need: blocks of kSampleBlock samples, a row of them for
// each feature, 64-byte aligned. Separately rounded IEEE operations in a fixed order: all instruction sets give the
// same numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

/// Samples in a block of normal equations.
inline constexpr std::size_t kSampleBlock = 128;

struct StencilFitKernels {
  /// left[s] = rows[count][s] - sum over features f < count of coefficients[f] * rows[f][s].
  void (*unexplained)(const double* rows, const double* coefficients, std::size_t count, double* left);
  /// Sum over a block of log2(1 + 4 left^2) / 2 in units of 2^-12 bits, straight between powers of two.
  std::uint32_t (*left_cost)(const double* left);
  /// weights[s] = 1 / (1 + 2 |left[s]|) for s < filled, 0 behind. Returns their sum.
  double (*left_weights)(const double* left, std::size_t filled, double* weights);
  /// rows[k][s] = block[from[k]][s] for k < width; weights[s] = 1 / (e^2 + e) for s < filled, 0 behind, where e is the
  /// sum over k < width - 1 of expected[k] * rows[k][s], at least 0.02.
  void (*context_samples)(const float* block, const std::size_t* from, std::size_t width, const double* expected,
                          std::size_t filled, double* rows, double* weights);
  /// Of `features` rows, then a row of magnitudes m and one of weights w: with e = constant + sum over f of
  /// expected[f] * rows[f][s], at least `least`, and v = w / (e (e + 1/2)), adds for each feature the sums of v m
  /// rows[f][s] and of v e rows[f][s] to sums[2f] and sums[2f + 1], and behind them those of v m and v e.
  void (*ratio_sums)(const float* rows, std::size_t features, const double* expected, double constant, double least,
                     double* sums);
};

}  // namespace quern::kernels

// The closed loop of one row: predict from values already reconstructed, quantize, reconstruct. Integers only.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "codecs/stencil/model.h"
#include "codecs/stencil/planes.h"
#include "kernels/core/residual_tokens.h"

namespace quern::codec::stencil {

/// Keeps the last values of a row that its near taps look at.
template <std::size_t N>
struct NearValues {
  std::array<std::int64_t, N> last{};

  explicit NearValues(const double* x) {
    for (std::size_t t = 0; t < N; ++t) last[t] = static_cast<std::int64_t>(x[-1 - static_cast<std::ptrdiff_t>(t)]);
  }
  /// The weighted sum on top of `far`; the latest value, which everything waits for, comes last.
  [[gnu::always_inline]] std::uint64_t sum(std::int64_t far,
                                           const std::array<std::int64_t, kernels::kMaxNearTaps>& weights) const {
    auto sum = static_cast<std::uint64_t>(far);
    for (std::size_t t = N; t-- > 0;)
      sum += static_cast<std::uint64_t>(weights[t]) * static_cast<std::uint64_t>(last[t]);
    return sum;
  }
  [[gnu::always_inline]] void push(std::int64_t value) {
    for (std::size_t t = N - 1; t > 0; --t) last[t] = last[t - 1];
    last[0] = value;
  }
};

struct LoopRow {
  const std::int64_t* far = nullptr;
  const std::int64_t* targets = nullptr;
  const std::uint8_t* special = nullptr;  ///< null: none
  double* values = nullptr;
  std::uint32_t* magnitudes = nullptr;
  std::int32_t* codes = nullptr;
};

/// Runs the loop over a row; special elements take the value before them. `WeightBits` are the model's.
template <std::size_t N, unsigned WeightBits, bool WithSpecial>
void run_row(const LoopRow& row, const SplitWeights& split, unsigned fraction_bits, std::size_t columns) {
  constexpr std::int64_t kMost = kernels::kMaxMagnitude;
  const std::int64_t half = (std::int64_t{1} << fraction_bits) >> 1;
  const std::int64_t whole = -(std::int64_t{1} << fraction_bits);  // mask of the bits above the fraction
  const std::array<std::int64_t, kernels::kMaxNearTaps> weights = split.near;
  const LoopRow to = row;  // nothing that is written changes it
  NearValues<N> near(to.values);
  for (std::size_t x = 0; x < columns; ++x) {
    const std::int64_t predicted = scaled_down(near.sum(to.far[x], weights), WeightBits);
    std::int64_t value = 0;
    std::int64_t code = 0;
    if (WithSpecial && to.special[x] != 0) {
      value = near.last[0];
    } else {
      // The next element waits for the value, not for the code.
      const std::int64_t left = to.targets[x] + half - predicted;
      value = predicted + (left & whole);
      code = left >> fraction_bits;
      if (code > kMost || code < -kMost) [[unlikely]] {
        code = code < 0 ? -kMost : kMost;
        value = predicted + code * (std::int64_t{1} << fraction_bits);
      }
    }
    to.codes[x] = static_cast<std::int32_t>(code);
    to.magnitudes[x] =
        static_cast<std::uint32_t>(std::min<std::int64_t>(code < 0 ? -code : code, kMaxContextMagnitude));
    to.values[x] = static_cast<double>(value);
    near.push(value);
  }
}

template <std::size_t N, unsigned WeightBits>
void run_row(const LoopRow& row, const SplitWeights& split, unsigned fraction_bits, std::size_t columns) {
  if (row.special != nullptr) return run_row<N, WeightBits, true>(row, split, fraction_bits, columns);
  return run_row<N, WeightBits, false>(row, split, fraction_bits, columns);
}

template <unsigned WeightBits>
void run_row(const LoopRow& row, const SplitWeights& split, unsigned fraction_bits, std::size_t columns) {
  if (split.near_count > 3) return run_row<kernels::kMaxNearTaps, WeightBits>(row, split, fraction_bits, columns);
  return run_row<3, WeightBits>(row, split, fraction_bits, columns);
}

/// Shifts by a constant are the fastest, and choose_format makes three.
inline void run_row_of(const LoopRow& row, const SplitWeights& split, const ChunkModel& model, std::size_t columns) {
  if (model.weight_bits == 12) return run_row<12>(row, split, model.fraction_bits, columns);
  if (model.weight_bits == 14) return run_row<14>(row, split, model.fraction_bits, columns);
  assert(model.weight_bits == 16);
  return run_row<16>(row, split, model.fraction_bits, columns);
}

}  // namespace quern::codec::stencil

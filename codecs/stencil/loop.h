// The closed loop of one row: predict from values already reconstructed, quantize, reconstruct. Integers only.
#pragma once

#include <algorithm>
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

/// Runs the loop over a row; special elements take the value before them.
template <std::size_t N>
void run_row(const LoopRow& row, const SplitWeights& split, const ChunkModel& model, std::size_t columns) {
  constexpr std::int64_t kMost = kernels::kMaxMagnitude;
  const unsigned weight_bits = model.weight_bits;
  const unsigned fraction_bits = model.fraction_bits;
  const std::int64_t half = (std::int64_t{1} << fraction_bits) >> 1;
  const std::int64_t whole = -(std::int64_t{1} << fraction_bits);  // mask of the bits above the fraction
  NearValues<N> near(row.values);
  for (std::size_t x = 0; x < columns; ++x) {
    const std::int64_t predicted = scaled_down(near.sum(row.far[x], split.near), weight_bits);
    std::int64_t value = 0;
    std::int64_t code = 0;
    if (row.special != nullptr && row.special[x] != 0) {
      value = near.last[0];
    } else {
      // The next element waits for the value, not for the code.
      const std::int64_t left = row.targets[x] + half - predicted;
      value = predicted + (left & whole);
      code = left >> fraction_bits;
      if (code > kMost || code < -kMost) [[unlikely]] {
        code = code < 0 ? -kMost : kMost;
        value = predicted + code * (std::int64_t{1} << fraction_bits);
      }
    }
    row.codes[x] = static_cast<std::int32_t>(code);
    row.magnitudes[x] =
        static_cast<std::uint32_t>(std::min<std::int64_t>(code < 0 ? -code : code, kMaxContextMagnitude));
    row.values[x] = static_cast<double>(value);
    near.push(value);
  }
}

inline void run_row_of(const LoopRow& row, const SplitWeights& split, const ChunkModel& model, std::size_t columns) {
  if (split.near_count > 3) return run_row<kernels::kMaxNearTaps>(row, split, model, columns);
  return run_row<3>(row, split, model, columns);
}

}  // namespace quern::codec::stencil

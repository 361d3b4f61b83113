// The closed loop of one row: predict from values already reconstructed, quantize, reconstruct. Integers only.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "codecs/stencil/raster/model.h"
#include "codecs/stencil/raster/planes.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/stencil/rules.h"

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

/// Part of a row.
inline LoopRow part_of(const LoopRow& row, std::size_t first) {
  return {row.far + first,    row.targets + first,    row.special == nullptr ? nullptr : row.special + first,
          row.values + first, row.magnitudes + first, row.codes + first};
}

/// Runs the loop over elements of a row, one after the other; special ones take the value before them.
template <std::size_t N, unsigned WeightBits>
void run_elements(const LoopRow& row, const SplitWeights& split, unsigned fraction_bits, std::size_t columns) {
  constexpr std::int64_t kMost = kernels::kMaxMagnitude;
  const std::int64_t half = (std::int64_t{1} << fraction_bits) >> 1;
  const std::int64_t whole = -(std::int64_t{1} << fraction_bits);  // mask of the bits above the fraction
  const std::array<std::int64_t, kernels::kMaxNearTaps> weights = split.near;
  const LoopRow to = row;  // nothing that is written changes it
  NearValues<N> near(to.values);
  for (std::size_t x = 0; x < columns; ++x) {
    const std::int64_t predicted = kernels::scaled_down(near.sum(to.far[x], weights), WeightBits);
    std::int64_t value = 0;
    std::int64_t code = 0;
    if (to.special != nullptr && to.special[x] != 0) {
      value = near.last[0];
    } else {
      const std::int64_t left = to.targets[x] + half - predicted;
      value = predicted + (left & whole);
      code = left >> fraction_bits;
      if (code > kMost || code < -kMost) [[unlikely]] {
        code = code < 0 ? -kMost : kMost;
        value = predicted + code * (std::int64_t{1} << fraction_bits);
      }
    }
    to.codes[x] = static_cast<std::int32_t>(code);
    to.magnitudes[x] = kernels::capped_magnitude(code, kernels::kMaxContextMagnitude);
    to.values[x] = static_cast<double>(value);
    near.push(value);
  }
}

/// What an element needs from the one before it, and no more: kernels make codes of it.
struct LoopSteps {
  static constexpr std::size_t kMost = 512;
  alignas(64) std::array<std::int64_t, kMost> left;    ///< targets less predictions, and half a code
  alignas(64) std::array<std::int64_t, kMost> values;  ///< predictions plus codes
};

/// Runs the loop over at most LoopSteps::kMost ordinary elements of a row, of codes of any size.
template <std::size_t N, unsigned WeightBits>
void run_steps(const LoopRow& row, const SplitWeights& split, unsigned fraction_bits, std::size_t columns,
               LoopSteps& steps) {
  const std::int64_t half = (std::int64_t{1} << fraction_bits) >> 1;
  const std::int64_t whole = -(std::int64_t{1} << fraction_bits);
  const std::array<std::int64_t, kernels::kMaxNearTaps> weights = split.near;
  const std::int64_t* const far = row.far;
  const std::int64_t* const targets = row.targets;
  NearValues<N> near(row.values);
  for (std::size_t x = 0; x < columns; ++x) {
    const std::int64_t predicted = kernels::scaled_down(near.sum(far[x], weights), WeightBits);
    const std::int64_t left = targets[x] + half - predicted;
    const std::int64_t value = predicted + (left & whole);
    steps.left[x] = left;
    steps.values[x] = value;
    near.push(value);
  }
}

/// Runs the loop over a row.
template <std::size_t N, unsigned WeightBits>
void run_row(const kernels::StencilKernels& kernels, const LoopRow& row, const SplitWeights& split,
             unsigned fraction_bits, std::size_t columns) {
  if (row.special != nullptr) return run_elements<N, WeightBits>(row, split, fraction_bits, columns);
  LoopSteps steps;  // NOLINT: run_steps sets what is read
  for (std::size_t first = 0; first < columns; first += LoopSteps::kMost) {
    const std::size_t count = std::min(LoopSteps::kMost, columns - first);
    const LoopRow part = part_of(row, first);
    run_steps<N, WeightBits>(part, split, fraction_bits, count, steps);
    if (!kernels.loop_codes(steps.left.data(), steps.values.data(), fraction_bits, kernels::kMaxContextMagnitude, count,
                            part.values, part.magnitudes, part.codes))
      run_elements<N, WeightBits>(part, split, fraction_bits, count);
  }
}

template <unsigned WeightBits>
void run_row(const kernels::StencilKernels& kernels, const LoopRow& row, const SplitWeights& split,
             unsigned fraction_bits, std::size_t columns) {
  if (split.near_count > 3)
    return run_row<kernels::kMaxNearTaps, WeightBits>(kernels, row, split, fraction_bits, columns);
  return run_row<3, WeightBits>(kernels, row, split, fraction_bits, columns);
}

/// Shifts by a constant are the fastest, and choose_format makes three.
inline void run_row_of(const kernels::StencilKernels& kernels, const LoopRow& row, const SplitWeights& split,
                       const RasterModel& model, std::size_t columns) {
  if (model.format.weight_bits == 12) return run_row<12>(kernels, row, split, model.format.fraction_bits, columns);
  if (model.format.weight_bits == 14) return run_row<14>(kernels, row, split, model.format.fraction_bits, columns);
  assert(model.format.weight_bits == 16);
  return run_row<16>(kernels, row, split, model.format.fraction_bits, columns);
}

}  // namespace quern::codec::stencil

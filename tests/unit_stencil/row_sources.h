// Sources of rows of levels, and what plain loops make of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/stencil/cpu/stencil.h"

namespace quern::codec::stencil::test {

inline constexpr std::size_t kRoom = 208;  // of a row, its beginning and the blocks behind it
inline constexpr std::size_t kBegin = 5;   // of the row behind its run's first
inline constexpr std::size_t kCounts[] = {1, 8, 15, 16, 17, 32, 37, 48, 49, 64, 100, 130};
inline constexpr unsigned kWeightBits = 14;

inline std::size_t whole_blocks(std::size_t count) {
  return (count + kernels::kStencilBlock - 1) / kernels::kStencilBlock * kernels::kStencilBlock;
}

class Numbers {
 public:
  explicit Numbers(unsigned seed) : random_(seed) {}
  std::int64_t within(std::int64_t most) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(2 * most + 1)) - most;
  }
  std::uint64_t operator()() { return random_(); }

 private:
  std::mt19937_64 random_;
};

/// Sources of rows, and what plain loops make of them.
template <class Value>
struct Sources {
  static constexpr std::size_t kTaps = 7;
  static constexpr std::size_t kMagnitudes = 5;
  static constexpr std::size_t kSpreads = 3;
  std::vector<std::array<Value, kRoom>> values{kTaps};
  using Magnitude = kernels::MagnitudeOf<Value>;
  std::vector<std::array<Magnitude, kRoom>> known{kMagnitudes};
  std::array<const Value*, kTaps> taps{};
  std::array<double, kTaps> weights{};
  std::array<const Magnitude*, kMagnitudes> magnitudes{};
  std::array<std::uint32_t, kMagnitudes> magnitude_weights{};
  std::array<kernels::SpreadSource<Value>, kSpreads> spreads;
  kernels::RowSourcesView<Value> view;

  /// Values are below 2^bits; the first taps and magnitudes are pairs of one weight.
  explicit Sources(Numbers& numbers, std::size_t tap_count = kTaps, unsigned bits = 25) {
    for (std::size_t t = 0; t < kTaps; ++t) {
      for (Value& v : values[t]) v = static_cast<Value>(numbers.within((std::int64_t{1} << bits) - 1));
      taps[t] = values[t].data();
      weights[t] = t == 1 || t == 3 ? weights[t - 1] : static_cast<double>(numbers.within(30000));
    }
    for (std::size_t t = 0; t < kMagnitudes; ++t) {
      for (Magnitude& m : known[t]) m = static_cast<Magnitude>(numbers() >> (40 + numbers() % 24));
      magnitudes[t] = known[t].data();
      magnitude_weights[t] = t == 1 ? magnitude_weights[0] : static_cast<std::uint32_t>(numbers() % 4096);
    }
    spreads[0] = {taps[0], taps[1], kernels::Spread::bend, -9, 300};
    spreads[1] = {taps[2], taps[3], kernels::Spread::slope, -10, 4000};
    spreads[2] = {taps[4], taps[4], kernels::Spread::change, -8, 17};
    view.taps = taps.data();
    view.tap_weights = weights.data();
    view.tap_count = tap_count;
    view.pair_count = std::min<std::size_t>(2, tap_count / 2);
    view.weight_bits = kWeightBits;
    view.constant = 99;
    view.magnitudes = magnitudes.data();
    view.magnitude_weights = magnitude_weights.data();
    view.magnitude_count = kMagnitudes;
    view.spreads = spreads.data();
    view.spread_count = kSpreads;
    view.most_spread = 65535;
    view.spread_bits = 6;
  }

  std::int64_t predicted(std::size_t x) const {
    std::int64_t sum = std::int64_t{1} << (view.weight_bits - 1);
    for (std::size_t t = 0; t < view.tap_count; ++t)
      sum += static_cast<std::int64_t>(weights[t]) * static_cast<std::int64_t>(values[t][kBegin + x]);
    return sum >> view.weight_bits;
  }
  std::uint32_t context(std::size_t x, std::int64_t prediction) const {
    std::uint32_t spread = 0;
    for (const auto& s : spreads) {
      const double distance = static_cast<double>(s.first[kBegin + x]) +
                              kernels::factor_of_second(s.kind) * static_cast<double>(s.second[kBegin + x]) +
                              kernels::factor_of_predicted(s.kind) * static_cast<double>(prediction);
      spread += s.weight * static_cast<std::uint32_t>(std::min(std::ldexp(std::fabs(distance), s.scale_bits), 65535.0));
    }
    std::uint32_t sum = 99 + (spread >> 6);
    for (std::size_t t = 0; t < kMagnitudes; ++t) sum += magnitude_weights[t] * known[t][kBegin + x];
    return sum;
  }
};

template <class T>
void expect_untouched(const std::array<T, kRoom>& row, std::size_t count, T value) {
  for (std::size_t x = whole_blocks(count); x < row.size(); ++x) ASSERT_EQ(row[x], value) << "written behind the row";
}

}  // namespace quern::codec::stencil::test

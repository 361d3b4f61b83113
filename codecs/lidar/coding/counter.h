// A probability that adapts: fast while it is young, then at a last rate.
#pragma once

#include <array>
#include <cstdint>

#include "codecs/lidar/coding/lanes.h"

namespace quern::codec::lidar {

inline constexpr unsigned kCounterAges = 21;

namespace detail {

/// Share of the distance, in units of 2^-16, that a counter of each age moves: 1 / (age + 1.5).
constexpr std::array<std::int32_t, kCounterAges> make_counter_rates() {
  std::array<std::int32_t, kCounterAges> rates{};
  for (unsigned age = 0; age < kCounterAges; ++age) rates[age] = static_cast<std::int32_t>(131072 / (2 * age + 3));
  return rates;
}
/// How far a counter of each age is to be trusted, in units of 2^-8: age / (age + 1).
constexpr std::array<std::int32_t, kCounterAges> make_counter_trust() {
  std::array<std::int32_t, kCounterAges> trust{};
  for (unsigned age = 0; age < kCounterAges; ++age) trust[age] = static_cast<std::int32_t>(256 * age / (age + 1));
  return trust;
}
inline constexpr auto kCounterRates = make_counter_rates();
inline constexpr auto kCounterTrust = make_counter_trust();

/// Of each age, the rate, and 64 times the trust in the upper half.
constexpr std::array<std::uint32_t, kCounterAges> make_counter_steps() {
  std::array<std::uint32_t, kCounterAges> steps{};
  for (unsigned age = 0; age < kCounterAges; ++age)
    steps[age] = static_cast<std::uint32_t>(kCounterRates[age] | 64 * kCounterTrust[age] << 16);
  return steps;
}
inline constexpr auto kCounterSteps = make_counter_steps();

}  // namespace detail

struct Counter {
  std::uint16_t one = 32768;  ///< probability of a one in units of 2^-16
  std::uint16_t age = 0;

  std::int32_t trust() const { return detail::kCounterTrust[age]; }
  void update(unsigned bit) {
    const std::int32_t target = bit != 0 ? 65535 : 0;
    const std::int32_t moved =
        static_cast<std::int32_t>((std::int64_t{target - one} * detail::kCounterRates[age]) >> 16);
    one = static_cast<std::uint16_t>(one + moved);
    if (age + 1U < kCounterAges) ++age;
  }
};

/// Eight counters of one decision, side by side.
class CounterLanes {
 public:
  using Words = std::array<std::uint32_t, kLanes>;  ///< a counter's number in the lower half, its age in the upper

  [[gnu::always_inline]] explicit CounterLanes(const Words& counters)
      : ones_(Lanes::lower_halves(counters)), ages_(Lanes::upper_halves(counters)) {
    Words steps;
    for (unsigned i = 0; i < kLanes; ++i) steps[i] = detail::kCounterSteps[counters[i] >> 16];
    rates_ = Lanes::lower_halves(steps);
    trust_ = Lanes::upper_halves(steps);
  }
  void store(Words& counters) const { join(ones_, ages_, counters); }

  // Upper halves of products: one factor is taken times a power of two, so that they are shifted by 8 and by 13.
  Lanes trusted(Lanes stretched) const { return upper_half(stretched << 2, trust_); }
  Lanes trusted_directly() const { return upper_half(ones_ ^ Lanes::all(INT16_MIN), trust_ >> 3); }

  /// As Counter::update() of each: the way to 65535 is that of the complement to 0.
  void update(unsigned bit) {
    const Lanes flip = Lanes::all(bit != 0 ? -1 : 0);
    const Lanes from = ones_ ^ flip;
    // Where the number falls, its movement is rounded up.
    const Lanes rest = and_not(flip | is_zero(lower_half(from, rates_)), Lanes::all(1));
    ones_ = (from - upper_half_unsigned(from, rates_) - rest) ^ flip;
    ages_ = least(ages_ + Lanes::all(1), Lanes::all(kCounterAges - 1));
  }

 private:
  Lanes ones_, ages_, trust_, rates_;
};

/// Codes a decision with one counter alone.
template <class Coder>
unsigned code_bit(Coder& coder, Counter& counter, unsigned value = 0) {
  const std::uint32_t one = counter.one < 1 ? 1 : counter.one;
  const unsigned bit = coder.bit(one, value);
  counter.update(bit);
  return bit;
}

}  // namespace quern::codec::lidar

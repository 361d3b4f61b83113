// A probability that adapts: fast while it is young, then at a last rate.
#pragma once

#include <array>
#include <cstdint>

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

/// Codes a decision with one counter alone.
template <class Coder>
unsigned code_bit(Coder& coder, Counter& counter, unsigned value = 0) {
  const std::uint32_t one = counter.one < 1 ? 1 : counter.one;
  const unsigned bit = coder.bit(one, value);
  counter.update(bit);
  return bit;
}

}  // namespace quern::codec::lidar

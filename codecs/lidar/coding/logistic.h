// Probabilities in the logistic domain, as tables of integers: stretch(p) = log2(p / (1 - p)) and its inverse. Mixing
// predictions there follows Mahoney, "Adaptive Weighing of Context Models for Lossless Data Compression" (2005).
#pragma once

#include <array>
#include <cstdint>

namespace quern::codec::lidar {

/// Probabilities are of a one, in units of 2^-16, within [1, 65535]. Stretched ones are in units of 2^-8 of a binary
/// order of magnitude, within [-kMostStretched, kMostStretched].
inline constexpr int kMostStretched = 3071;

namespace detail {

/// 2^(2^-k) for k = 1..8 in units of 2^-32.
inline constexpr std::array<std::uint64_t, 8> kRootsOfTwo = {
    UINT64_C(0x16A09E667), UINT64_C(0x1306FE0A3), UINT64_C(0x1172B83C7), UINT64_C(0x10B5586CF),
    UINT64_C(0x1059B0D31), UINT64_C(0x102C9A3E7), UINT64_C(0x10163DA9F), UINT64_C(0x100B1AFA5)};

/// 2^(x / 256) in units of 2^-32, for 0 <= x <= kMostStretched.
constexpr std::uint64_t exp2_fixed(unsigned x) {
  std::uint64_t value = UINT64_C(1) << 32;
  for (unsigned k = 0; k < 8; ++k) {
    if ((x >> (7 - k) & 1) == 0) continue;
    const std::uint64_t root = kRootsOfTwo[k];
    value = ((value >> 16) * (root >> 1)) >> 15;
  }
  return value << (x >> 8);
}

constexpr std::uint16_t squash_of(int x) {
  const std::uint64_t odds = exp2_fixed(static_cast<unsigned>(x < 0 ? -x : x));
  const std::uint64_t small = (UINT64_C(1) << 48) / ((UINT64_C(1) << 32) + odds);
  std::uint64_t p = x < 0 ? small : 65536 - small;
  if (p < 1) p = 1;
  if (p > 65535) p = 65535;
  return static_cast<std::uint16_t>(p);
}

constexpr std::array<std::uint16_t, 2 * kMostStretched + 1> make_squash() {
  std::array<std::uint16_t, 2 * kMostStretched + 1> table{};
  for (int x = -kMostStretched; x <= kMostStretched; ++x)
    table[static_cast<std::size_t>(x + kMostStretched)] = squash_of(x);
  return table;
}
inline constexpr auto kSquash = make_squash();

/// The least x whose probability is not below the middle of a step of 16.
constexpr std::array<std::int16_t, 4096> make_stretch() {
  std::array<std::int16_t, 4096> table{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    while (at + 1 < kSquash.size() && kSquash[at] < 16 * i + 8) ++at;
    table[i] = static_cast<std::int16_t>(static_cast<int>(at) - kMostStretched);
  }
  return table;
}
inline constexpr auto kStretch = make_stretch();

}  // namespace detail

/// log2(p / (65536 - p)).
inline int stretch(std::uint32_t p) { return detail::kStretch[p >> 4]; }

/// The probability whose stretched form is x, after clamping.
inline std::uint32_t squash(std::int64_t x) {
  if (x < -kMostStretched) x = -kMostStretched;
  if (x > kMostStretched) x = kMostStretched;
  return detail::kSquash[static_cast<std::size_t>(x + kMostStretched)];
}

}  // namespace quern::codec::lidar

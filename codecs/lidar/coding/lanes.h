// Eight 16-bit integers side by side, as far as mixing needs them: on SSE2 a register, else an array. Both give the
// same numbers. Sums and differences are modulo 2^16.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace quern::codec::lidar {

inline constexpr unsigned kLanes = 8;

namespace plain {

struct Lanes {
  std::array<std::int16_t, kLanes> v{};

  static Lanes all(std::int16_t value) {
    Lanes lanes;
    lanes.v.fill(value);
    return lanes;
  }
  template <class Operation>
  static Lanes each(const Lanes& a, const Lanes& b, const Operation& operation) {
    Lanes result;
    for (unsigned i = 0; i < kLanes; ++i) result.v[i] = static_cast<std::int16_t>(operation(a.v[i], b.v[i]));
    return result;
  }
  static Lanes lower_halves(const std::array<std::uint32_t, kLanes>& words) {
    Lanes lanes;
    for (unsigned i = 0; i < kLanes; ++i) lanes.v[i] = static_cast<std::int16_t>(words[i] & 0xFFFF);
    return lanes;
  }
  static Lanes upper_halves(const std::array<std::uint32_t, kLanes>& words) {
    Lanes lanes;
    for (unsigned i = 0; i < kLanes; ++i) lanes.v[i] = static_cast<std::int16_t>(words[i] >> 16);
    return lanes;
  }
};

inline Lanes operator+(const Lanes& a, const Lanes& b) {
  return Lanes::each(a, b, [](int x, int y) { return x + y; });
}
inline Lanes operator-(const Lanes& a, const Lanes& b) {
  return Lanes::each(a, b, [](int x, int y) { return x - y; });
}
inline Lanes operator^(const Lanes& a, const Lanes& b) {
  return Lanes::each(a, b, [](int x, int y) { return x ^ y; });
}
inline Lanes operator|(const Lanes& a, const Lanes& b) {
  return Lanes::each(a, b, [](int x, int y) { return x | y; });
}
inline Lanes and_not(const Lanes& not_a, const Lanes& b) {
  return Lanes::each(not_a, b, [](int x, int y) { return ~x & y; });
}
inline Lanes operator<<(const Lanes& a, int bits) {
  return Lanes::each(a, a, [bits](int x, int) { return x * (1 << bits); });
}
inline Lanes operator>>(const Lanes& a, int bits) {
  return Lanes::each(a, a, [bits](int x, int) { return x >> bits; });
}
inline Lanes least(const Lanes& a, const Lanes& b) {
  return Lanes::each(a, b, [](int x, int y) { return std::min(x, y); });
}
inline Lanes most(const Lanes& a, const Lanes& b) {
  return Lanes::each(a, b, [](int x, int y) { return std::max(x, y); });
}
/// -1 or 0.
inline Lanes is_zero(const Lanes& a) {
  return Lanes::each(a, a, [](int x, int) { return x == 0 ? -1 : 0; });
}
/// Halves of products.
inline Lanes lower_half(const Lanes& a, const Lanes& b) {
  return Lanes::each(a, b, [](int x, int y) { return x * y; });
}
inline Lanes upper_half(const Lanes& a, const Lanes& b) {
  return Lanes::each(a, b, [](int x, int y) { return (x * y) >> 16; });
}
inline Lanes upper_half_unsigned(const Lanes& a, const Lanes& b) {
  return Lanes::each(a, b, [](int x, int y) {
    return (static_cast<std::uint32_t>(x) & 0xFFFF) * (static_cast<std::uint32_t>(y) & 0xFFFF) >> 16;
  });
}
/// The sum of all products. The caller sees to it that those of any half of the lanes add up within 32 bits.
template <std::size_t kCount>
std::int64_t dot(const std::array<Lanes, kCount>& a, const std::array<Lanes, kCount>& b) {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < kCount; ++k)
    for (unsigned i = 0; i < kLanes; ++i) sum += std::int32_t{a[k].v[i]} * b[k].v[i];
  return sum;
}
/// Words of lower and upper halves.
inline void join(const Lanes& lower, const Lanes& upper, std::array<std::uint32_t, kLanes>& words) {
  for (unsigned i = 0; i < kLanes; ++i)
    words[i] = static_cast<std::uint16_t>(lower.v[i]) | std::uint32_t{static_cast<std::uint16_t>(upper.v[i])} << 16;
}

}  // namespace plain

#ifdef __SSE2__

namespace sse2 {

struct Lanes {
  __m128i v = _mm_setzero_si128();

  static Lanes all(std::int16_t value) { return {_mm_set1_epi16(value)}; }
  static Lanes lower_halves(const std::array<std::uint32_t, kLanes>& words) {
    const auto half = [](__m128i four) { return _mm_srai_epi32(_mm_slli_epi32(four, 16), 16); };
    return {_mm_packs_epi32(half(four(words, 0)), half(four(words, 4)))};
  }
  static Lanes upper_halves(const std::array<std::uint32_t, kLanes>& words) {
    return {_mm_packs_epi32(_mm_srai_epi32(four(words, 0), 16), _mm_srai_epi32(four(words, 4), 16))};
  }
  static __m128i four(const std::array<std::uint32_t, kLanes>& words, unsigned first) {
    const auto word = [&](unsigned i) { return static_cast<int>(words[first + i]); };
    return _mm_set_epi32(word(3), word(2), word(1), word(0));
  }
};

inline Lanes operator+(Lanes a, Lanes b) { return {_mm_add_epi16(a.v, b.v)}; }
inline Lanes operator-(Lanes a, Lanes b) { return {_mm_sub_epi16(a.v, b.v)}; }
inline Lanes operator^(Lanes a, Lanes b) { return {_mm_xor_si128(a.v, b.v)}; }
inline Lanes operator|(Lanes a, Lanes b) { return {_mm_or_si128(a.v, b.v)}; }
inline Lanes and_not(Lanes not_a, Lanes b) { return {_mm_andnot_si128(not_a.v, b.v)}; }
inline Lanes operator<<(Lanes a, int bits) { return {_mm_slli_epi16(a.v, bits)}; }
inline Lanes operator>>(Lanes a, int bits) { return {_mm_srai_epi16(a.v, bits)}; }
inline Lanes least(Lanes a, Lanes b) { return {_mm_min_epi16(a.v, b.v)}; }
inline Lanes most(Lanes a, Lanes b) { return {_mm_max_epi16(a.v, b.v)}; }
inline Lanes is_zero(Lanes a) { return {_mm_cmpeq_epi16(a.v, _mm_setzero_si128())}; }
inline Lanes lower_half(Lanes a, Lanes b) { return {_mm_mullo_epi16(a.v, b.v)}; }
inline Lanes upper_half(Lanes a, Lanes b) { return {_mm_mulhi_epi16(a.v, b.v)}; }
inline Lanes upper_half_unsigned(Lanes a, Lanes b) { return {_mm_mulhi_epu16(a.v, b.v)}; }
template <std::size_t kCount>
std::int64_t dot(const std::array<Lanes, kCount>& a, const std::array<Lanes, kCount>& b) {
  __m128i sum = _mm_madd_epi16(a[0].v, b[0].v);
  for (std::size_t i = 1; i < kCount; ++i) sum = _mm_add_epi32(sum, _mm_madd_epi16(a[i].v, b[i].v));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
  return std::int64_t{_mm_cvtsi128_si32(sum)} + _mm_cvtsi128_si32(_mm_shuffle_epi32(sum, 0xB1));
}
inline void join(Lanes lower, Lanes upper, std::array<std::uint32_t, kLanes>& words) {
  auto* const out = reinterpret_cast<__m128i*>(words.data());
  _mm_storeu_si128(out, _mm_unpacklo_epi16(lower.v, upper.v));
  _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(lower.v, upper.v));
}

}  // namespace sse2

using sse2::Lanes;

#else

using plain::Lanes;

#endif

}  // namespace quern::codec::lidar

// Vectors of one instruction set, and what the kernels of rows do to them that GCC 12 would not do well by itself.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/round_vectors.h"
#include "kernels/common/cpu/vector_bytes.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace quern::kernels {

template <class Isa>
struct RowVectors {
  static constexpr std::size_t kBytes = QUERN_VECTOR_BYTES;
  static constexpr std::size_t kMostBlocks = kBytes / 16;  ///< at a time: as many sums as there are registers for
  using Doubles = double __attribute__((vector_size(QUERN_VECTOR_BYTES)));
  using Integers = std::int64_t __attribute__((vector_size(QUERN_VECTOR_BYTES)));
  using Longs = std::uint64_t __attribute__((vector_size(QUERN_VECTOR_BYTES)));
  using Words = std::uint32_t __attribute__((vector_size(QUERN_VECTOR_BYTES)));
  using Floats = float __attribute__((vector_size(QUERN_VECTOR_BYTES)));
  using Truths = std::int32_t __attribute__((vector_size(QUERN_VECTOR_BYTES)));
  using HalfFloats = float __attribute__((vector_size(QUERN_VECTOR_BYTES / 2)));
  using HalfWords = std::int32_t __attribute__((vector_size(QUERN_VECTOR_BYTES / 2)));
  using HalfMagnitudes = std::uint32_t __attribute__((vector_size(QUERN_VECTOR_BYTES / 2)));
  using Shorts = std::uint16_t __attribute__((vector_size(QUERN_VECTOR_BYTES / 2)));
  using HalfShorts = std::uint16_t __attribute__((vector_size(QUERN_VECTOR_BYTES / 4)));
  using Bytes = std::uint8_t __attribute__((vector_size(QUERN_VECTOR_BYTES / 4)));
  static constexpr std::size_t kColumns = 16;  ///< of a block
  static constexpr std::size_t kWidth = kBytes / sizeof(double);
  static constexpr std::size_t kParts = kColumns / kWidth;  ///< vectors of doubles in a block
  static constexpr std::size_t kPairs = kParts / 2;         ///< vectors of words

  /// A vector anywhere in memory, whatever lies there. GCC 12 would copy vectors of 64 bytes by way of the stack if
  /// they were loaded by memcpy.
  template <class Vector>
  struct [[gnu::packed, gnu::may_alias]] Loose {
    Vector vector;
  };
  // Vectors pass by reference: how they are returned differs between instruction sets.
  template <class Vector>
  [[gnu::always_inline]] static void load(const void* from, Vector& v) {
    v = static_cast<const Loose<Vector>*>(from)->vector;
  }
  template <class Vector>
  [[gnu::always_inline]] static void store(void* to, const Vector& v) {
    static_cast<Loose<Vector>*>(to)->vector = v;
  }
  [[gnu::always_inline]] static void join(const HalfWords& low, const HalfWords& high, Words& out) {
#if defined(__AVX512F__)
    const Truths joined = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    const Truths joined = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
    load(&joined, out);
  }
  [[gnu::always_inline]] static void split(const Words& both, HalfWords& low, HalfWords& high) {
    Truths signed_words;
    load(&both, signed_words);
#if defined(__AVX512F__)
    low = __builtin_shufflevector(signed_words, signed_words, 0, 1, 2, 3, 4, 5, 6, 7);
    high = __builtin_shufflevector(signed_words, signed_words, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    low = __builtin_shufflevector(signed_words, signed_words, 0, 1, 2, 3);
    high = __builtin_shufflevector(signed_words, signed_words, 4, 5, 6, 7);
#endif
  }
  [[gnu::always_inline]] static void number_places(Integers& places) {
    for (std::size_t i = 0; i < kWidth; ++i) places[i] = static_cast<std::int64_t>(i);
  }
  [[gnu::always_inline]] static void to_integers(const Doubles& v, Longs& out) {
    round_to_integers(v, out);  // wraps on bytes no encoder writes
  }

  /// v / 2^bits, rounded down. Before AVX-512 there is no shift that keeps the sign.
  [[gnu::always_inline]] static void shift_down(const Longs& v, unsigned bits, Integers& out) {
#if defined(__AVX512F__)
    load(&v, out);
    out >>= static_cast<int>(bits);
#else
    constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
    const Longs shifted = ((v ^ kSign) >> bits) - (kSign >> bits);
    load(&shifted, out);
#endif
  }
  /// sums / 2^bits, halves up: exact where sums are integers below 2^51.
  [[gnu::always_inline]] static void scale_down(const Doubles& sums, unsigned bits, Doubles& out) {
#if defined(__AVX512F__)
    const Doubles factor = Doubles{} + std::bit_cast<double>(std::uint64_t{1023 - bits} << 52);
    const Doubles half = Doubles{} + 0.5;
    Doubles scaled = half;
    add_exact(sums, factor, scaled);
    out = reinterpret_cast<Doubles>(
        _mm512_roundscale_pd(reinterpret_cast<__m512d>(scaled), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
#elif defined(__AVX2__)
    const Doubles scaled = sums * std::bit_cast<double>(std::uint64_t{1023 - bits} << 52) + 0.5;
    out = reinterpret_cast<Doubles>(_mm256_floor_pd(reinterpret_cast<__m256d>(scaled)));
#else
    Longs whole;
    Integers shifted;
    to_integers(sums, whole);
    shift_down(whole + (std::uint64_t{1} << (bits - 1)), bits, shifted);
    load(&shifted, whole);
    to_numbers(whole, out);
#endif
  }
  /// Integers below 2^51 as numbers.
  [[gnu::always_inline]] static void to_numbers(const Longs& v, Doubles& out) { integers_to_numbers(v, out); }
  /// Any integers as numbers, rounded once.
  [[gnu::always_inline]] static void to_rounded(const Integers& v, Doubles& out) {
#if defined(__AVX512DQ__)
    out = __builtin_convertvector(v, Doubles);
#else
    Longs all;
    Integers upper;
    Longs high;
    Doubles above;
    load(&v, all);
    shift_down(all, 32, upper);
    load(&upper, high);
    to_numbers(high, above);
    to_numbers(all & 0xffffffffu, out);
    out += above * 0x1p32;
#endif
  }

  /// As many values as a vector has, as numbers.
  [[gnu::always_inline]] static void load_numbers(const double* from, Doubles& v) { load(from, v); }
  [[gnu::always_inline]] static void load_numbers(const std::int32_t* from, Doubles& v) {
    HalfWords narrow;
    load(from, narrow);
    widen(narrow, v);
  }
  /// As many magnitudes as a vector has words.
  [[gnu::always_inline]] static void load_words(const std::uint32_t* from, Words& v) { load(from, v); }
  [[gnu::always_inline]] static void load_words(const std::uint16_t* from, Words& v) {
    Shorts narrow;
    load(from, narrow);
#if defined(__AVX512F__)
    v = reinterpret_cast<Words>(_mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(narrow)));
#elif defined(__AVX2__)
    v = reinterpret_cast<Words>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(narrow)));
#else
    v = __builtin_convertvector(narrow, Words);
#endif
  }
  [[gnu::always_inline]] static void store_words(const Words& v, std::uint32_t* to) { store(to, v); }
  [[gnu::always_inline]] static void store_words(const Words& v, std::uint16_t* to) {
    const Shorts narrow = __builtin_convertvector(v, Shorts);
    store(to, narrow);
  }
  [[gnu::always_inline]] static void round_to_single(Doubles& v) {
    const HalfFloats single = __builtin_convertvector(v, HalfFloats);
#if defined(__AVX512F__)
    v = reinterpret_cast<Doubles>(_mm512_cvtps_pd(reinterpret_cast<__m256>(single)));
#elif defined(__AVX2__)
    v = reinterpret_cast<Doubles>(_mm256_cvtps_pd(reinterpret_cast<__m128>(single)));
#else
    v = __builtin_convertvector(single, Doubles);
#endif
  }
  [[gnu::always_inline]] static void widen(const HalfWords& narrow, Doubles& wide) {
#if defined(__AVX512F__)
    // GCC 12 converts the halves of the vector instead.
    wide = reinterpret_cast<Doubles>(_mm512_cvtepi32_pd(reinterpret_cast<__m256i>(narrow)));
#elif defined(__AVX2__)
    wide = reinterpret_cast<Doubles>(_mm256_cvtepi32_pd(reinterpret_cast<__m128i>(narrow)));
#else
    wide = __builtin_convertvector(narrow, Doubles);
#endif
  }

  /// sum + a * b, where that is exact: fused where the instruction set can.
  [[gnu::always_inline]] static void add_exact(const Doubles& a, const Doubles& b, Doubles& sum) {
#if defined(__AVX512F__)
    sum = reinterpret_cast<Doubles>(
        _mm512_fmadd_pd(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b), reinterpret_cast<__m512d>(sum)));
#else
    sum += a * b;
#endif
  }
  /// most = most > v ? most : v; what is no number is taken, and replaced by what comes next.
  [[gnu::always_inline]] static void take_greater(const Doubles& v, Doubles& most) {
#if defined(__AVX512F__)
    most = reinterpret_cast<Doubles>(_mm512_max_pd(reinterpret_cast<__m512d>(most), reinterpret_cast<__m512d>(v)));
#elif defined(__AVX2__)
    most = reinterpret_cast<Doubles>(_mm256_max_pd(reinterpret_cast<__m256d>(most), reinterpret_cast<__m256d>(v)));
#else
    most = most > v ? most : v;
#endif
  }
  /// least = least < v ? least : v in the same way.
  [[gnu::always_inline]] static void take_less(const Doubles& v, Doubles& least) {
#if defined(__AVX512F__)
    least = reinterpret_cast<Doubles>(_mm512_min_pd(reinterpret_cast<__m512d>(least), reinterpret_cast<__m512d>(v)));
#elif defined(__AVX2__)
    least = reinterpret_cast<Doubles>(_mm256_min_pd(reinterpret_cast<__m256d>(least), reinterpret_cast<__m256d>(v)));
#else
    least = least < v ? least : v;
#endif
  }
  /// Magnitudes of words that have a sign.
  [[gnu::always_inline]] static void absolute(const Words& v, Words& out) {
#if defined(__AVX512F__)
    out = reinterpret_cast<Words>(_mm512_abs_epi32(reinterpret_cast<__m512i>(v)));
#elif defined(__AVX2__)
    out = reinterpret_cast<Words>(_mm256_abs_epi32(reinterpret_cast<__m256i>(v)));
#else
    const Words sign = 0u - (v >> 31);
    out = (v ^ sign) - sign;
#endif
  }
  [[gnu::always_inline]] static void absolute(const Doubles& v, Doubles& out) {
    out = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(v) & (~std::uint64_t{0} >> 1));
  }
  /// True when a word is not 0.
  [[gnu::always_inline]] static bool any_of(const Words& v) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(v), reinterpret_cast<__m512i>(v)) != 0;
#elif defined(__AVX2__)
    return _mm256_testz_si256(reinterpret_cast<__m256i>(v), reinterpret_cast<__m256i>(v)) == 0;
#else
    std::uint32_t any = 0;
    for (std::size_t i = 0; i < 2 * kWidth; ++i) any |= v[i];
    return any != 0;
#endif
  }

  /// Calls visit.operator()<N>(column) for N blocks of columns at a time.
  template <class Visit>
  [[gnu::always_inline]] static void for_blocks(std::size_t count, const Visit& visit) {
    std::size_t x = 0;
    for (; x + (kMostBlocks - 1) * kColumns < count; x += kMostBlocks * kColumns)
      visit.template operator()<kMostBlocks>(x);
    if constexpr (kMostBlocks > 2) {
      if (x + 2 * kColumns < count) return visit.template operator()<3>(x);
      if (x + kColumns < count) {
        visit.template operator()<2>(x);
        x += 2 * kColumns;
      }
    }
    if (x < count) visit.template operator()<1>(x);
  }
  /// The same as visit.operator()<N, Whole>(column): what is behind the last whole block is one of its own.
  template <class Visit>
  [[gnu::always_inline]] static void for_whole_blocks(std::size_t count, const Visit& visit) {
    std::size_t x = 0;
    for (; x + kMostBlocks * kColumns <= count; x += kMostBlocks * kColumns)
      visit.template operator()<kMostBlocks, true>(x);
    const std::size_t left = (count - x) / kColumns;
    if constexpr (kMostBlocks > 2) {
      if (left == 3) visit.template operator()<3, true>(x);
      if (left == 2) visit.template operator()<2, true>(x);
    }
    if (left == 1) visit.template operator()<1, true>(x);
    x += left * kColumns;
    if (x < count) visit.template operator()<1, false>(x);
  }
};

}  // namespace quern::kernels

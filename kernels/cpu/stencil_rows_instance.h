// Kernels of rows of levels for one instruction set; part of stencil_instance.h.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/context_levels.h"
#include "kernels/cpu/stencil_rows.h"
#include "kernels/cpu/vector_bytes.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace quern::kernels {

template <class Isa>
struct StencilRowInstance {
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
  using Bytes = std::uint8_t __attribute__((vector_size(QUERN_VECTOR_BYTES / 4)));
  static constexpr std::size_t kColumns = 16;  ///< of a block
  static constexpr std::size_t kWidth = kBytes / sizeof(double);
  static constexpr std::size_t kParts = kColumns / kWidth;  ///< vectors of doubles in a block
  static constexpr std::size_t kPairs = kParts / 2;         ///< vectors of words
  static constexpr double kMagic = 0x1.8p52;  ///< added to integers below 2^51 it puts them into the low bits

  // Vectors pass by reference: how they are returned differs between instruction sets.
  template <class Vector>
  [[gnu::always_inline]] static void load(const void* from, Vector& v) {
    std::memcpy(&v, from, sizeof(v));
  }
  template <class Vector>
  [[gnu::always_inline]] static void store(void* to, const Vector& v) {
    std::memcpy(to, &v, sizeof(v));
  }
  [[gnu::always_inline]] static void join(const HalfWords& low, const HalfWords& high, Words& out) {
#if defined(__AVX512F__)
    const Truths joined = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    const Truths joined = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
    load(&joined, out);
  }
  [[gnu::always_inline]] static void number_places(Integers& places) {
    for (std::size_t i = 0; i < kWidth; ++i) places[i] = static_cast<std::int64_t>(i);
  }
  [[gnu::always_inline]] static void to_integers(const Doubles& v, Longs& out) {
    const Doubles shifted = v + kMagic;
    load(&shifted, out);
    out -= std::bit_cast<std::uint64_t>(kMagic);  // wraps on bytes no encoder writes
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
  /// Integers below 2^51 as numbers.
  [[gnu::always_inline]] static void to_numbers(const Longs& v, Doubles& out) {
    const Longs shifted = v + std::bit_cast<std::uint64_t>(kMagic);
    load(&shifted, out);
    out -= kMagic;
  }
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

  /// Predictions of N blocks of columns from place `at` of the sources. `Exact`: the sums surely are below 2^51, as an
  /// encoder's are; on bytes that no encoder writes they may be rounded, by all instruction sets alike.
  template <std::size_t N, bool Exact, class Value>
  [[gnu::always_inline]] static void predict_blocks(const RowSourcesView<Value>& sources, std::size_t at,
                                                    Integers (&predicted)[kParts * N]) {
    Doubles sums[kParts * N] = {};
    const Value* const* const taps = sources.taps;
    const double* const weights = sources.tap_weights;
    for (std::size_t t = 0; t < sources.tap_count; ++t) {
      const Value* const from = taps[t] + at;
      const double weight = weights[t];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kParts * N; ++i) {
        Doubles source;
        load_numbers(from + kWidth * i, source);
        if constexpr (Exact) {
          add_exact(Doubles{} + weight, source, sums[i]);
        } else {
          sums[i] += weight * source;
        }
      }
    }
    const std::uint64_t half = std::uint64_t{1} << (sources.weight_bits - 1);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kParts * N; ++i) {
      Longs integers;
      to_integers(sums[i], integers);
      shift_down(integers + half, sources.weight_bits, predicted[i]);
    }
  }

  /// Context sums of N blocks of columns.
  template <std::size_t N, class Value>
  [[gnu::always_inline]] static void sum_blocks(const RowSourcesView<Value>& sources, std::size_t at,
                                                const Doubles (&numbers)[kParts * N], Words (&sums)[kPairs * N]) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kPairs * N; ++i) sums[i] = Words{};
    for (std::size_t f = 0; f < sources.spread_count; ++f) {
      const SpreadSource<Value>& spread = sources.spreads[f];
      const Value* const first = spread.first + at;
      const Value* const second = spread.second + at;
      const Doubles most = Doubles{} + sources.most_spread;
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kPairs * N; ++i) {
        HalfWords halves[2];
#pragma GCC unroll 2
        for (std::size_t h = 0; h < 2; ++h) {
          Doubles a;
          Doubles b;
          load_numbers(first + kWidth * (2 * i + h), a);
          load_numbers(second + kWidth * (2 * i + h), b);
          const Doubles sum = a + spread.second_factor * b + spread.predicted_factor * numbers[2 * i + h];
          Longs bits;
          load(&sum, bits);
          bits &= ~std::uint64_t{0} >> 1;
          Doubles distance;
          load(&bits, distance);
          distance *= spread.scale;
          distance = distance < most ? distance : most;
          halves[h] = __builtin_convertvector(distance, HalfWords);
        }
        Words joined;
        join(halves[0], halves[1], joined);
        sums[i] += spread.weight * joined;
      }
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kPairs * N; ++i) sums[i] = (sums[i] >> sources.spread_bits) + sources.constant;
    const std::uint32_t* const* const magnitudes = sources.magnitudes;
    const std::uint32_t* const weights = sources.magnitude_weights;
    for (std::size_t t = 0; t < sources.magnitude_count; ++t) {
      const std::uint32_t* const from = magnitudes[t] + at;
      const std::uint32_t weight = weights[t];
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kPairs * N; ++i) {
        Words source;
        load(from + 2 * kWidth * i, source);
        sums[i] += weight * source;
      }
    }
  }

  /// As ContextLevels.
  [[gnu::always_inline]] static void store_levels(const Words& given, std::uint8_t* out) {
    const Words sums = given > 2 ? given : Words{} + 2;
    const Words halves = (sums & ~(sums >> 1)) >> 1;
    Truths whole;
    load(&halves, whole);
    const Floats real = __builtin_convertvector(whole, Floats);
    Words leading;
    load(&real, leading);
    leading = (leading >> 23) - 126;
    const Words level = 2 * leading + (sums >> (leading - 1) & 1);
    const Bytes bytes = __builtin_convertvector(level, Bytes);
    store(out, bytes);
  }

  /// Calls visit.operator()<N>(column) for N blocks of columns at a time.
  template <class Visit>
  [[gnu::always_inline]] static void for_blocks(std::size_t count, const Visit& visit) {
    std::size_t x = 0;
    for (; x + (kMostBlocks - 1) * kColumns < count; x += kMostBlocks * kColumns)
      visit.template operator()<kMostBlocks>(x);
    if constexpr (kMostBlocks > 2) {
      if (x + kColumns < count) {
        visit.template operator()<2>(x);
        x += 2 * kColumns;
      }
    }
    if (x < count) visit.template operator()<1>(x);
  }

  template <class Value>
  static void predict(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count,
                      std::int64_t* predicted, std::uint8_t* levels) {
    for_blocks(
        count, [&]<std::size_t N>(std::size_t x) __attribute__((always_inline)) {
          Integers results[kParts * N];
          predict_blocks<N, false>(sources, begin + x, results);
          Doubles numbers[kParts * N];
#pragma GCC unroll 8
          for (std::size_t i = 0; i < kParts * N; ++i) {
            store(predicted + x + kWidth * i, results[i]);
            to_rounded(results[i], numbers[i]);
          }
          Words sums[kPairs * N];
          sum_blocks<N>(sources, begin + x, numbers, sums);
#pragma GCC unroll 4
          for (std::size_t i = 0; i < kPairs * N; ++i) store_levels(sums[i], levels + x + 2 * kWidth * i);
        });
  }

  /// What is looked at of what comes back.
  enum class Check : std::uint8_t { none, single, whole };

  template <class Value>
  static CodedRowResult code(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count,
                             const CodedRowBuffers<Value>& row) {
    if (row.strict == 0) return code_as<Check::none>(sources, begin, count, row);
    return row.single ? code_as<Check::single>(sources, begin, count, row)
                      : code_as<Check::whole>(sources, begin, count, row);
  }
  template <Check Kind, class Value>
  static CodedRowResult code_as(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count,
                                const CodedRowBuffers<Value>& given) {
    const CodedRowBuffers<Value> row = given;
    Integers missed{};
    Integers wide{};
    for_blocks(
        count, [&]<std::size_t N>(std::size_t x) __attribute__((always_inline)) {
          Integers predicted[kParts * N];
          predict_blocks<N, true>(sources, begin + x, predicted);
#pragma GCC unroll 8
          for (std::size_t i = 0; i < kParts * N; ++i)
            code_part<Kind>(predicted[i], row, x + kWidth * i, count, missed, wide);
        });
    const auto none = [](const Integers& marked) {
      std::int64_t any = 0;
      for (std::size_t i = 0; i < kWidth; ++i) any |= marked[i];
      return any == 0;
    };
    return {Kind != Check::none && none(missed), none(wide)};
  }

  /// A vector's columns of `code`.
  template <Check Kind, class Value>
  [[gnu::always_inline]] static void code_part(const Integers& predicted, const CodedRowBuffers<Value>& row,
                                               std::size_t x, std::size_t count, Integers& missed, Integers& wide) {
    // What is behind the row has no meaning.
    Integers places;
    number_places(places);
    const auto left = static_cast<std::int64_t>(count) - static_cast<std::int64_t>(x);
    constexpr double kMost = 0x1p44;
    Doubles original;
    load(row.originals + x, original);
    Doubles inside = (original - row.base) * row.inverse;
    inside = inside > -kMost ? inside : Doubles{};
    inside = inside < kMost ? inside : Doubles{};
    const auto quantum = static_cast<double>(row.quantum);
    Longs bits;
    Doubles number;
    load(&predicted, bits);
    to_numbers(bits, number);
    const Doubles difference = ((inside + kMagic) - kMagic) - number;
    Doubles code = difference * (1 / quantum) + kMagic;
    code -= kMagic;
    const Doubles most = Doubles{} + static_cast<double>(row.most);
    code = code > most ? most : code;
    code = code < -most ? -most : code;
    const Doubles value = number + code * quantum;
    if constexpr (std::is_same_v<Value, double>) {
      store(row.values + x, value);
    } else {
      constexpr auto kMostValue = static_cast<double>(kMostNarrow - 1);
      Doubles narrow = value > kMostValue ? Doubles{} + kMostValue : value;
      narrow = narrow < -kMostValue ? Doubles{} - kMostValue : narrow;
      store(row.values + x, __builtin_convertvector(narrow, HalfWords));
      wide |= (narrow != value) & (places < left);
    }
    if constexpr (Kind != Check::none) {
      Doubles back = value * row.unit + row.base;
      if constexpr (Kind == Check::single) round_to_single(back);
      Doubles distance = original - back;
      distance = distance < 0 ? -distance : distance;
      missed |= (~(distance < row.strict) | (original == 0)) & (places < left);
    }
    const HalfWords narrow = __builtin_convertvector(code, HalfWords);
    store(row.codes + x, narrow);
    const HalfWords largest = HalfWords{} + static_cast<std::int32_t>(row.most_magnitude);
    HalfWords magnitude = narrow < 0 ? -narrow : narrow;
    magnitude = magnitude > largest ? largest : magnitude;
    store(row.magnitudes + x, magnitude);
  }

  template <class Value>
  static void contexts(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count, const Value* values,
                       const std::int32_t* codes, std::int64_t quantum, std::uint32_t* sums) {
    const auto unit = static_cast<double>(quantum);
    for_blocks(
        count, [&]<std::size_t N>(std::size_t x) __attribute__((always_inline)) {
          Doubles numbers[kParts * N];
#pragma GCC unroll 8
          for (std::size_t i = 0; i < kParts * N; ++i) {
            HalfWords code;
            Doubles value;
            load(codes + x + kWidth * i, code);
            load_numbers(values + x + kWidth * i, value);
            Doubles number;
            widen(code, number);
            numbers[i] = value - number * unit;
          }
          Words results[kPairs * N];
          sum_blocks<N>(sources, begin + x, numbers, results);
#pragma GCC unroll 4
          for (std::size_t i = 0; i < kPairs * N; ++i) store(sums + x + 2 * kWidth * i, results[i]);
        });
  }

  template <class Value>
  static bool reconstruct(const std::int64_t* predicted, const std::int32_t* codes, std::int64_t quantum,
                          std::uint32_t most, std::size_t count, Value* values, std::uint32_t* magnitudes) {
    const auto unit = static_cast<std::uint64_t>(quantum);
    Longs beyond{};
    for (std::size_t x = 0; x < count; x += kWidth) {
      HalfWords code;
      Longs value;
      load(codes + x, code);
      load(predicted + x, value);
      const Integers wide = __builtin_convertvector(code, Integers);
      Longs factor;
      load(&wide, factor);
      value = (value + factor * unit) << 11;
      Integers whole;
      shift_down(value, 11, whole);
      if constexpr (std::is_same_v<Value, double>) {
        Doubles number;
        to_rounded(whole, number);
        store(values + x, number);
      } else {
        store(values + x, __builtin_convertvector(whole, HalfWords));
        Longs biased;
        load(&whole, biased);
        biased += static_cast<std::uint64_t>(kMostNarrow);
        // What is behind the row has no meaning.
        Integers numbers;
        Longs places;
        number_places(numbers);
        load(&numbers, places);
        beyond |= places < Longs{} + (count - x) ? biased : Longs{};
      }
      const HalfWords sign = code >> 31;
      HalfMagnitudes magnitude;
      HalfMagnitudes flip;
      load(&code, magnitude);
      load(&sign, flip);
      magnitude = (magnitude ^ flip) - flip;
      magnitude = magnitude < most ? magnitude : HalfMagnitudes{} + most;
      store(magnitudes + x, magnitude);
    }
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < kWidth; ++i) any |= beyond[i];
    return any < 2 * static_cast<std::uint64_t>(kMostNarrow);
  }

  template <class T>
  static void interleave(const T* even, const T* odd, std::size_t count, T* out) {
    for (std::size_t x = 0; x < count; ++x) {
      out[2 * x] = even[x];
      out[2 * x + 1] = odd[x];
    }
  }
  [[gnu::always_inline]] static std::uint32_t single(double value, double unit, double base) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(value * unit + base));
  }
  template <class Value>
  static void store_pairs(const Value* even, const Value* odd, double unit, double base, std::size_t count,
                          std::uint32_t* out) {
    for (std::size_t x = 0; x < count; ++x) {
      out[2 * x] = single(static_cast<double>(even[x]), unit, base);
      out[2 * x + 1] = single(static_cast<double>(odd[x]), unit, base);
    }
  }

  template <class Value>
  static constexpr ValueRowKernels<Value> kValueKernels{&predict<Value>,     &reconstruct<Value>, &interleave<Value>,
                                                        &store_pairs<Value>, &code<Value>,        &contexts<Value>};
  static constexpr StencilRowKernels kKernels{kValueKernels<double>, kValueKernels<std::int32_t>,
                                              &interleave<std::uint32_t>};
};

}  // namespace quern::kernels

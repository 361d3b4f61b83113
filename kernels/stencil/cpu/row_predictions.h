// Predictions of rows of levels for one instruction set: weighted sums of values, in binary64 or in 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/stencil/cpu/row_contexts.h"
#include "kernels/stencil/cpu/rows.h"

namespace quern::kernels {

template <class Isa>
struct RowPredictions : RowContexts<Isa> {
  using V = RowVectors<Isa>;
  using typename V::Doubles;
  using typename V::HalfMagnitudes;
  using typename V::HalfWords;
  using typename V::Integers;
  using typename V::Longs;
  using typename V::Truths;
  using typename V::Words;
  using V::add_exact;
  using V::kPairs;
  using V::kParts;
  using V::kWidth;
  using V::load;
  using V::load_numbers;
  using V::scale_down;
  using V::shift_down;
  using V::split;
  using V::to_integers;
  using V::widen;

  /// Predictions of N blocks of columns from place `at` of the sources. `Exact`: the sums surely are below 2^51, as an
  /// encoder's are; on bytes that no encoder writes they may be rounded, by all instruction sets alike.
  template <std::size_t N, bool Exact, class Value>
  [[gnu::always_inline]] static void predict_blocks(const RowSourcesView<Value>& sources, std::size_t at,
                                                    Integers (&predicted)[kParts * N]) {
    Doubles sums[kParts * N] = {};
    add_taps<N, Exact>(sources, at, sums);
    const std::uint64_t half = std::uint64_t{1} << (sources.weight_bits - 1);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kParts * N; ++i) {
      Longs integers;
      to_integers(sums[i], integers);
      shift_down(integers + half, sources.weight_bits, predicted[i]);
    }
  }
  /// Exact ones as numbers.
  template <std::size_t N, class Value>
  [[gnu::always_inline]] static void predict_numbers(const RowSourcesView<Value>& sources, std::size_t at,
                                                     Doubles (&predicted)[kParts * N]) {
    Doubles sums[kParts * N] = {};
    add_taps<N, true>(sources, at, sums);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kParts * N; ++i) scale_down(sums[i], sources.weight_bits, predicted[i]);
  }
  /// Adds weighted taps.
  template <std::size_t N, bool Exact, class Value>
  [[gnu::always_inline]] static void add_taps(const RowSourcesView<Value>& sources, std::size_t at,
                                              Doubles (&sums)[kParts * N]) {
    const Value* const* const taps = sources.taps;
    const double* const weights = sources.tap_weights;
    std::size_t t = 0;
    if constexpr (Exact && !std::is_same_v<Value, double>) {
      // Two taps of a pair are one conversion and one product.
      for (const std::size_t end = 2 * sources.pair_count; t < end; t += 2) {
        const Value* const from = taps[t] + at;
        const Value* const opposite = taps[t + 1] + at;
        const double weight = weights[t];
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kParts * N; ++i) {
          HalfMagnitudes sum;
          HalfMagnitudes other;
          load(from + kWidth * i, sum);
          load(opposite + kWidth * i, other);
          sum += other;
          HalfWords both;
          load(&sum, both);
          Doubles source;
          widen(both, source);
          add_exact(Doubles{} + weight, source, sums[i]);
        }
      }
    }
    for (const std::size_t end = sources.tap_count; t < end; ++t) {
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
  }
  /// The same where sources are small enough: products and sums are taken modulo 2^32, which no result leaves.
  template <std::size_t N>
  [[gnu::always_inline]] static void predict_small_blocks(const RowSourcesView<std::int32_t>& sources, std::size_t at,
                                                          Words (&predicted)[kPairs * N]) {
    const std::int32_t* const* const taps = sources.taps;
    const double* const weights = sources.tap_weights;
    Words sums[kPairs * N];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kPairs * N; ++i) sums[i] = Words{} + (1u << (sources.weight_bits - 1));
    std::size_t t = 0;
    for (const std::size_t end = 2 * sources.pair_count; t < end; t += 2) {
      const std::int32_t* const from = taps[t] + at;
      const std::int32_t* const opposite = taps[t + 1] + at;
      const auto weight = static_cast<std::uint32_t>(static_cast<std::int32_t>(weights[t]));
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kPairs * N; ++i) {
        Words source;
        Words other;
        load(from + 2 * kWidth * i, source);
        load(opposite + 2 * kWidth * i, other);
        sums[i] += weight * (source + other);
      }
    }
    for (const std::size_t end = sources.tap_count; t < end; ++t) {
      const std::int32_t* const from = taps[t] + at;
      const auto weight = static_cast<std::uint32_t>(static_cast<std::int32_t>(weights[t]));
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kPairs * N; ++i) {
        Words source;
        load(from + 2 * kWidth * i, source);
        sums[i] += weight * source;
      }
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kPairs * N; ++i) {
      Truths whole;
      load(&sums[i], whole);
      whole >>= static_cast<int>(sources.weight_bits);
      load(&whole, predicted[i]);
    }
  }
  template <std::size_t N>
  [[gnu::always_inline]] static void predict_small_numbers(const RowSourcesView<std::int32_t>& sources, std::size_t at,
                                                           Doubles (&predicted)[kParts * N]) {
    Words words[kPairs * N];
    predict_small_blocks<N>(sources, at, words);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kPairs * N; ++i) {
      HalfWords halves[2];
      split(words[i], halves[0], halves[1]);
      widen(halves[0], predicted[2 * i]);
      widen(halves[1], predicted[2 * i + 1]);
    }
  }
};

}  // namespace quern::kernels

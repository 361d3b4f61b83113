// Context sums of rows of levels for one instruction set: magnitudes and differences around their elements, weighted.
#pragma once

#include <type_traits>

#include "kernels/entropy/cpu/context_bins.h"
#include "kernels/stencil/cpu/row_vectors.h"
#include "kernels/stencil/cpu/rows.h"

namespace quern::kernels {

template <class Isa>
struct RowContexts : RowVectors<Isa> {
  using V = RowVectors<Isa>;
  using typename V::Bytes;
  using typename V::Doubles;
  using typename V::Floats;
  using typename V::HalfWords;
  using typename V::Integers;
  using typename V::Longs;
  using typename V::Truths;
  using typename V::Words;
  using V::absolute;
  using V::any_of;
  using V::join;
  using V::kPairs;
  using V::kParts;
  using V::kWidth;
  using V::load;
  using V::load_numbers;
  using V::load_words;
  using V::store;
  using V::to_rounded;
  using V::widen;

  static constexpr std::uint64_t kMostPredicted = std::uint64_t{1} << 29;        ///< from here on sums leave 32 bits
  static constexpr std::uint64_t kMostCoded = kMostPredicted - kMostNarrow - 1;  ///< of codes times quanta before that

  /// Context sums of N blocks of columns.
  template <std::size_t N, class Value>
  [[gnu::always_inline]] static void sum_predicted(const RowSourcesView<Value>& sources, std::size_t at,
                                                   const Integers (&predicted)[kParts * N], Words (&sums)[kPairs * N]) {
    if constexpr (!std::is_same_v<Value, double>) {
      Longs beyond{};
      Words narrow[kPairs * N];
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kPairs * N; ++i) {
        HalfWords halves[2];
#pragma GCC unroll 2
        for (std::size_t h = 0; h < 2; ++h) {
          Longs biased;
          load(&predicted[2 * i + h], biased);
          beyond |= (biased + kMostPredicted) & ~(2 * kMostPredicted - 1);
          halves[h] = __builtin_convertvector(predicted[2 * i + h], HalfWords);
        }
        join(halves[0], halves[1], narrow[i]);
      }
      Words any;
      load(&beyond, any);
      if (!any_of(any)) return sum_narrow_blocks<N>(sources, at, narrow, sums);
    }
    Doubles numbers[kParts * N];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kParts * N; ++i) to_rounded(predicted[i], numbers[i]);
    sum_blocks<N>(sources, at, numbers, sums);
  }
  /// The same, predictions being values - codes * quantum.
  template <std::size_t N, class Value>
  [[gnu::always_inline]] static void sum_coded(const RowSourcesView<Value>& sources, std::size_t at,
                                               const Value* values, const std::int32_t* codes, std::int64_t quantum,
                                               Words (&sums)[kPairs * N]) {
    if constexpr (!std::is_same_v<Value, double>) {
      const auto unit = static_cast<std::uint64_t>(quantum);
      const Words most = Words{} + static_cast<std::uint32_t>(kMostCoded / unit);
      Words predicted[kPairs * N];
      Words beyond{};
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kPairs * N; ++i) {
        Words code;
        Words magnitude;
        load(codes + 2 * kWidth * i, code);
        load(values + 2 * kWidth * i, predicted[i]);
        predicted[i] -= code * static_cast<std::uint32_t>(unit);
        absolute(code, magnitude);
        const Words more = magnitude > most ? magnitude : Words{};
        beyond |= more;
      }
      if (!any_of(beyond)) return sum_narrow_blocks<N>(sources, at, predicted, sums);
    }
    const auto unit = static_cast<double>(quantum);
    Doubles numbers[kParts * N];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kParts * N; ++i) {
      HalfWords code;
      Doubles value;
      load(codes + kWidth * i, code);
      load_numbers(values + kWidth * i, value);
      Doubles number;
      widen(code, number);
      numbers[i] = value - number * unit;
    }
    sum_blocks<N>(sources, at, numbers, sums);
  }

  /// `numbers`: the predictions.
  template <std::size_t N, class Value>
  [[gnu::always_inline]] static void sum_blocks(const RowSourcesView<Value>& sources, std::size_t at,
                                                const Doubles (&numbers)[kParts * N], Words (&sums)[kPairs * N]) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kPairs * N; ++i) sums[i] = Words{};
    for (std::size_t f = 0; f < sources.spread_count; ++f) {
      const SpreadSource<Value>& spread = sources.spreads[f];
      const Value* const first = spread.first + at;
      const Value* const second = spread.second + at;
      const double second_factor = factor_of_second(spread.kind);
      const double predicted_factor = factor_of_predicted(spread.kind);
      const double scale = spread.scale();
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
          Doubles distance;
          absolute(a + second_factor * b + predicted_factor * numbers[2 * i + h], distance);
          distance *= scale;
          distance = distance < most ? distance : most;
          halves[h] = __builtin_convertvector(distance, HalfWords);
        }
        Words joined;
        join(halves[0], halves[1], joined);
        sums[i] += spread.weight * joined;
      }
    }
    add_magnitudes<N>(sources, at, sums);
  }
  /// The same of narrow values, predictions below kMostPredicted in magnitude: as a value is below 3 * kMostNarrow even
  /// one place beyond a border, no difference leaves 32 bits.
  template <std::size_t N>
  [[gnu::always_inline]] static void sum_narrow_blocks(const RowSourcesView<std::int32_t>& sources, std::size_t at,
                                                       const Words (&predicted)[kPairs * N],
                                                       Words (&sums)[kPairs * N]) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kPairs * N; ++i) sums[i] = Words{};
    const Words most = Words{} + static_cast<std::uint32_t>(sources.most_spread);
    for (std::size_t f = 0; f < sources.spread_count; ++f) {
      const SpreadSource<std::int32_t>& spread = sources.spreads[f];
      const std::int32_t* const first = spread.first + at;
      const std::int32_t* const second = spread.second + at;
      Words differences[kPairs * N];
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kPairs * N; ++i) load(first + 2 * kWidth * i, differences[i]);
      if (spread.kind != Spread::change) {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kPairs * N; ++i) {
          Words other;
          load(second + 2 * kWidth * i, other);
          differences[i] += spread.kind == Spread::bend ? other - 2 * predicted[i] : -other;
        }
      } else {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kPairs * N; ++i) differences[i] -= predicted[i];
      }
      const int down = spread.scale_bits < 0 ? -spread.scale_bits : 0;
      const int up = spread.scale_bits < 0 ? 0 : spread.scale_bits;
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kPairs * N; ++i) {
        absolute(differences[i], differences[i]);
        differences[i] >>= down;
        differences[i] = differences[i] < most ? differences[i] : most;
      }
      if (up > 0) {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kPairs * N; ++i) {
          differences[i] <<= up;
          differences[i] = differences[i] < most ? differences[i] : most;
        }
      }
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kPairs * N; ++i) sums[i] += spread.weight * differences[i];
    }
    add_magnitudes<N>(sources, at, sums);
  }
  /// Ends context sums that hold the spreads. Neighbours in the list mostly share a weight.
  template <std::size_t N, class Value>
  [[gnu::always_inline]] static void add_magnitudes(const RowSourcesView<Value>& sources, std::size_t at,
                                                    Words (&sums)[kPairs * N]) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kPairs * N; ++i) sums[i] = (sums[i] >> sources.spread_bits) + sources.constant;
    const MagnitudeOf<Value>* const* const magnitudes = sources.magnitudes;
    const std::uint32_t* const weights = sources.magnitude_weights;
    const std::size_t count = sources.magnitude_count;
    for (std::size_t t = 0; t < count;) {
      const std::uint32_t weight = weights[t];
      Words alike[kPairs * N] = {};
      do {
        const MagnitudeOf<Value>* const from = magnitudes[t] + at;
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kPairs * N; ++i) {
          Words source;
          load_words(from + 2 * kWidth * i, source);
          alike[i] += source;
        }
      } while (++t < count && weights[t] == weight);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kPairs * N; ++i) sums[i] += weight * alike[i];
    }
  }
  [[gnu::always_inline]] static void store_bins(const Words& sums, std::uint8_t* out) {
    Words bins;
    ContextBins<Isa>::template bins_of<Floats, Truths>(sums, bins);
    const Bytes bytes = __builtin_convertvector(bins, Bytes);
    store(out, bytes);
  }
};

}  // namespace quern::kernels

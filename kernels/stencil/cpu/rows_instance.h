// Kernels of rows of levels for one instruction set; part of instance.h.
#pragma once

#include <bit>
#include <type_traits>

#include "kernels/stencil/cpu/narrow_rows.h"
#include "kernels/stencil/cpu/row_codes.h"
#include "kernels/stencil/cpu/row_contexts.h"
#include "kernels/stencil/cpu/row_predictions.h"
#include "kernels/stencil/cpu/row_vectors.h"
#include "kernels/stencil/cpu/rows.h"

namespace quern::kernels {

template <class Isa>
struct StencilRowInstance : RowCodes<Isa> {
  using Codes = RowCodes<Isa>;
  using Contexts = RowContexts<Isa>;
  using Narrow = NarrowRows<Isa>;
  using Predictions = RowPredictions<Isa>;
  using V = RowVectors<Isa>;
  using Contexts::store_bins;
  using typename V::Doubles;
  using typename V::HalfMagnitudes;
  using typename V::HalfShorts;
  using typename V::HalfWords;
  using typename V::Integers;
  using typename V::Longs;
  using typename V::Words;
  using V::for_blocks;
  using V::kPairs;
  using V::kParts;
  using V::kWidth;
  using V::load;
  using V::number_places;
  using V::shift_down;
  using V::store;
  using V::to_rounded;

  template <class Value>
  static void predict(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count,
                      std::int64_t* predicted, std::uint8_t* levels) {
    for_blocks(
        count, [&]<std::size_t N>(std::size_t x) __attribute__((always_inline)) {
          Integers results[kParts * N];
          if (!std::is_same_v<Value, double> && sources.exact) {
            Predictions::template predict_blocks<N, true>(sources, begin + x, results);
          } else {
            Predictions::template predict_blocks<N, false>(sources, begin + x, results);
          }
#pragma GCC unroll 8
          for (std::size_t i = 0; i < kParts * N; ++i) store(predicted + x + kWidth * i, results[i]);
          Words sums[kPairs * N];
          Contexts::template sum_predicted<N>(sources, begin + x, results, sums);
#pragma GCC unroll 4
          for (std::size_t i = 0; i < kPairs * N; ++i) store_bins(sums[i], levels + x + 2 * kWidth * i);
        });
  }

  template <class Value>
  static void contexts(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count, const Value* values,
                       const std::int32_t* codes, std::int64_t quantum, std::uint32_t* sums) {
    for_blocks(
        count, [&]<std::size_t N>(std::size_t x) __attribute__((always_inline)) {
          Words results[kPairs * N];
          Contexts::template sum_coded<N>(sources, begin + x, values + x, codes + x, quantum, results);
#pragma GCC unroll 4
          for (std::size_t i = 0; i < kPairs * N; ++i) store(sums + x + 2 * kWidth * i, results[i]);
        });
  }

  template <class Value>
  static bool reconstruct(const std::int64_t* predicted, const std::int32_t* codes, std::int64_t quantum,
                          [[maybe_unused]] std::uint32_t most, std::size_t count, Value* values,
                          MagnitudeOf<Value>* magnitudes) {
    const auto unit = static_cast<std::uint64_t>(quantum);
    Longs beyond{};
    HalfMagnitudes all_magnitudes{};
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
      if constexpr (std::is_same_v<Value, double>) {
        magnitude = magnitude < most ? magnitude : HalfMagnitudes{} + most;
        store(magnitudes + x, magnitude);
      } else {
        const HalfShorts stored = __builtin_convertvector(magnitude, HalfShorts);
        store(magnitudes + x, stored);
        HalfMagnitudes columns;
        for (std::size_t i = 0; i < kWidth; ++i) columns[i] = static_cast<std::uint32_t>(i);
        all_magnitudes |= columns < static_cast<std::uint32_t>(count - x) ? magnitude : HalfMagnitudes{};
      }
    }
    std::uint64_t any = 0;
    std::uint32_t magnitude = 0;
    for (std::size_t i = 0; i < kWidth; ++i) {
      any |= beyond[i];
      magnitude |= all_magnitudes[i];
    }
    return any < 2 * static_cast<std::uint64_t>(kMostNarrow) && magnitude < kMostMagnitudes;
  }

  static void predict_small(const RowSourcesView<std::int32_t>& sources, std::size_t begin, std::size_t count,
                            std::int32_t* predicted, std::uint8_t* levels) {
    for_blocks(
        count, [&]<std::size_t N>(std::size_t x) __attribute__((always_inline)) {
          Words results[kPairs * N];
          Predictions::template predict_small_blocks<N>(sources, begin + x, results);
          Words sums[kPairs * N];
          Contexts::template sum_narrow_blocks<N>(sources, begin + x, results, sums);
#pragma GCC unroll 4
          for (std::size_t i = 0; i < kPairs * N; ++i) {
            store(predicted + x + 2 * kWidth * i, results[i]);
            store_bins(sums[i], levels + x + 2 * kWidth * i);
          }
        });
  }

  static bool reconstruct_small(const std::int32_t* predicted, const std::int32_t* codes, std::int64_t quantum,
                                std::uint32_t limit, std::size_t count, std::int32_t* values,
                                std::uint16_t* magnitudes) {
    constexpr std::size_t kColumnsOfWords = 2 * kWidth;
    const auto unit = static_cast<std::uint32_t>(quantum);
    typename Narrow::Seen seen;
    const auto step = [&]<bool Whole>(std::size_t x) __attribute__((always_inline)) {
      Words code;
      Words value;
      load(codes + x, code);
      load(predicted + x, value);
      value += code * unit;
      Narrow::template put<Whole>(value, code, limit, x, count, values, magnitudes, seen);
    };
    std::size_t x = 0;
    for (; x + kColumnsOfWords <= count; x += kColumnsOfWords) step.template operator()<true>(x);
    if (x < count) step.template operator()<false>(x);
    // No value that is kept has left 32 bits, as codes times quanta are below 2^28 then.
    return Narrow::all_narrow(seen, limit);
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
  static constexpr ValueRowKernels<Value> kValueKernels{&predict<Value>,     &reconstruct<Value>,
                                                        &interleave<Value>,  &interleave<MagnitudeOf<Value>>,
                                                        &store_pairs<Value>, &Codes::template code<false, Value>,
                                                        &contexts<Value>};
  static constexpr SmallRowKernels kSmallKernels{&predict_small, &reconstruct_small,
                                                 &Codes::template code<true, std::int32_t>};
  static constexpr StencilRowKernels kKernels{kValueKernels<double>, kValueKernels<std::int32_t>, kSmallKernels};
};

}  // namespace quern::kernels

// Codes of rows of levels for one instruction set: what elements differ from predictions by, what comes back, and
// whether it is near enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/common/cpu/round_vectors.h"
#include "kernels/stencil/cpu/narrow_rows.h"
#include "kernels/stencil/cpu/row_predictions.h"
#include "kernels/stencil/cpu/rows.h"
#include "kernels/stencil/rules.h"

namespace quern::kernels {

template <class Isa>
struct RowCodes : RowPredictions<Isa> {
  using Narrow = NarrowRows<Isa>;
  using Predictions = RowPredictions<Isa>;
  using V = RowVectors<Isa>;
  using typename V::Doubles;
  using typename V::HalfWords;
  using typename V::Integers;
  using typename V::Words;
  using V::absolute;
  using V::add_exact;
  using V::any_of;
  using V::for_whole_blocks;
  using V::join;
  using V::kPairs;
  using V::kParts;
  using V::kWidth;
  using V::load;
  using V::number_places;
  using V::round_to_single;
  using V::store;
  using V::take_greater;
  using V::take_less;

  /// What is looked at of what comes back.
  enum class Check : std::uint8_t { none, single, whole };

  template <bool Small, class Value>
  static CodedRowResult code(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count,
                             const CodedRowBuffers<Value>& row) {
    if (row.strict == 0) return code_as<Check::none, Small>(sources, begin, count, row);
    return row.single ? code_as<Check::single, Small>(sources, begin, count, row)
                      : code_as<Check::whole, Small>(sources, begin, count, row);
  }

  /// What was found so far.
  struct Seen {
    typename Narrow::Seen narrow;   ///< of narrow values and their codes
    Doubles farthest{};             ///< distance of what comes back
    Doubles least = Doubles{} + 1;  ///< magnitude of an original, at most 1; 0 for NaN
  };
  /// Numbers that all vectors share.
  struct Shared {
    Doubles base;
    Doubles inverse;
    Doubles quantum;
    Doubles reciprocal;
    Doubles unit;
    template <class Value>
    explicit Shared(const CodedRowBuffers<Value>& row)
        : base(Doubles{} + row.base),
          inverse(Doubles{} + row.inverse),
          quantum(Doubles{} + static_cast<double>(row.quantum)),
          reciprocal(Doubles{} + 1 / static_cast<double>(row.quantum)),
          unit(Doubles{} + row.unit) {}
  };

  template <Check Kind, bool Small, class Value>
  static CodedRowResult code_as(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count,
                                const CodedRowBuffers<Value>& given) {
    const CodedRowBuffers<Value> row = given;
    const Shared shared(row);
    Seen seen;
    for_whole_blocks(
        count, [&]<std::size_t N, bool Whole>(std::size_t x) __attribute__((always_inline)) {
          Doubles predicted[kParts * N];
          if constexpr (Small) {
            Predictions::template predict_small_numbers<N>(sources, begin + x, predicted);
          } else {
            Predictions::template predict_numbers<N>(sources, begin + x, predicted);
          }
          if constexpr (std::is_same_v<Value, double>) {
#pragma GCC unroll 8
            for (std::size_t i = 0; i < kParts * N; ++i)
              code_wide<Kind, Whole>(predicted[i], row, shared, x + kWidth * i, count, seen);
          } else {
#pragma GCC unroll 4
            for (std::size_t i = 0; i < kPairs * N; ++i)
              code_narrow<Kind, Whole>({predicted[2 * i], predicted[2 * i + 1]}, row, shared, x + 2 * kWidth * i, count,
                                       seen);
          }
        });
    const Integers far = ~((seen.farthest < row.strict) & (seen.least > 0));
    Words missed;
    load(&far, missed);
    const bool narrow = Narrow::all_narrow(seen.narrow, static_cast<std::uint32_t>(row.limit));
    if (!narrow) std::memset(row.codes, 0, count * sizeof(*row.codes));  // what was no number is no code
    return {Kind != Check::none && !any_of(missed), narrow};
  }

  /// A vector's columns.
  template <Check Kind, bool Whole>
  [[gnu::always_inline]] static void code_wide(const Doubles& number, const CodedRowBuffers<double>& row,
                                               const Shared& shared, std::size_t x, std::size_t count, Seen& seen) {
    Doubles original;
    load(row.originals + x, original);
    Doubles inside = (original - shared.base) * shared.inverse;
    inside = inside > -kMaxUnits ? inside : Doubles{};
    inside = inside < kMaxUnits ? inside : Doubles{};
    Doubles target;
    Doubles code;
    round_vector(inside, target);
    round_vector((target - number) * shared.reciprocal, code);
    const Doubles most = Doubles{} + static_cast<double>(row.most);
    code = code < most ? code : most;
    code = code > -most ? code : -most;
    const Doubles value = number + code * shared.quantum;
    store(row.values + x, value);
    if constexpr (Kind != Check::none) check<Kind, Whole, true>(original, value, shared, x, count, seen);
    const HalfWords whole_code = __builtin_convertvector(code, HalfWords);
    store(row.codes + x, whole_code);
    const HalfWords largest = HalfWords{} + static_cast<std::int32_t>(row.most_magnitude);
    HalfWords magnitude = whole_code < 0 ? -whole_code : whole_code;
    magnitude = magnitude > largest ? largest : magnitude;
    store(row.magnitudes + x, magnitude);
  }

  /// Columns of two vectors. What is no number, or leaves 32 bits, becomes the least of all integers, which neither a
  /// value nor a code may be.
  template <Check Kind, bool Whole>
  [[gnu::always_inline]] static void code_narrow(const Doubles (&numbers)[2], const CodedRowBuffers<std::int32_t>& row,
                                                 const Shared& shared, std::size_t x, std::size_t count, Seen& seen) {
    HalfWords codes[2];
    HalfWords values[2];
#pragma GCC unroll 2
    for (std::size_t h = 0; h < 2; ++h) {
      Doubles original;
      load(row.originals + x + kWidth * h, original);
      const Doubles inside = (original - shared.base) * shared.inverse;
      Doubles target;
      Doubles code;
      round_vector(inside, target);
      round_vector((target - numbers[h]) * shared.reciprocal, code);
      Doubles value = numbers[h];
      add_exact(code, shared.quantum, value);
      codes[h] = __builtin_convertvector(code, HalfWords);
      values[h] = __builtin_convertvector(value, HalfWords);
      if constexpr (Kind != Check::none)
        check<Kind, Whole, false>(original, value, shared, x + kWidth * h, count, seen);
    }
    Words code;
    Words value;
    join(codes[0], codes[1], code);
    join(values[0], values[1], value);
    store(row.codes + x, code);
    Narrow::template put<Whole>(value, code, static_cast<std::uint32_t>(row.limit), x, count, row.values,
                                row.magnitudes, seen.narrow);
  }

  /// How near a vector's values come back. `Nan`: originals may be no numbers.
  template <Check Kind, bool Whole, bool Nan>
  [[gnu::always_inline]] static void check(const Doubles& original, const Doubles& value, const Shared& shared,
                                           std::size_t x, std::size_t count, Seen& seen) {
    Doubles back = value * shared.unit + shared.base;
    if constexpr (Kind == Check::single) round_to_single(back);
    Doubles distance;
    Doubles magnitude;
    absolute(original - back, distance);
    absolute(original, magnitude);
    if constexpr (Nan) magnitude = original == original ? magnitude : Doubles{};  // it would be forgotten
    if constexpr (!Whole) {
      const auto left = static_cast<std::int64_t>(count) - static_cast<std::int64_t>(x);
      Integers places;
      number_places(places);
      distance = places < left ? distance : Doubles{};
      magnitude = places < left ? magnitude : Doubles{} + 1;
    }
    take_greater(distance, seen.farthest);
    take_less(magnitude, seen.least);
  }
};

}  // namespace quern::kernels

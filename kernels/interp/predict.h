// Numbers of the interp codec that a CPU and a device both compute, each by one function: weights of interpolation,
// predictions from weighted sums, codes and values, and what selects a code's distribution. All are integers and wrap
// around. Values are in units of 2^-fraction_bits of a step.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "kernels/common/round_to_integer.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::kernels {

/// How four neighbours along an axis predict the point in the middle of them; stored.
enum class InterpKind : std::uint8_t {
  linear = 0,   ///< the nearest two
  cubic = 1,    ///< the cubic through all four
  natural = 2,  ///< about the natural spline
};
inline constexpr unsigned kInterpKinds = 3;

/// How the points of a class are predicted: the mean of interpolations along some axes that are odd in it.
struct InterpPredictor {
  std::uint8_t axes = 0;  ///< bit a: along axis a
  InterpKind kind = InterpKind::cubic;
};

inline constexpr unsigned kInterpWeightBits = 6;
/// Weights, in units of 2^-6, of the neighbours at -3, -1, +1 and +3 steps.
using InterpWeights = std::array<std::int8_t, 4>;

/// Weights where the neighbour at -1 is there and the others may be; they sum to 64.
[[gnu::always_inline]] constexpr InterpWeights interp_weights(InterpKind kind, bool before, bool after,
                                                              bool after_next) {
  if (!after) return before ? InterpWeights{-32, 96, 0, 0} : InterpWeights{0, 64, 0, 0};
  if (kind == InterpKind::linear || (!before && !after_next)) return {0, 32, 32, 0};
  if (!before) return {0, 24, 48, -8};
  if (!after_next) return {-8, 48, 24, 0};
  return kind == InterpKind::cubic ? InterpWeights{-4, 36, 36, -4} : InterpWeights{-5, 37, 37, -5};
}

/// The weights along an axis of the point between coarse points `i` and `i` + 1 of `points`. A tile has 2^log of these
/// steps, and nothing beyond its ends is seen.
template <class Size>
[[gnu::always_inline]] constexpr InterpWeights interp_weights_at(InterpKind kind, Size i, Size points, unsigned log) {
  const Size last = (Size{1} << log) - 1;
  const Size place = i & last;
  return interp_weights(kind, place > 0, i + 1 < points, place < last && i + 2 < points);
}

/// Adds and multiplies modulo 2^32 or 2^64.
template <class Word>
using InterpUnsigned = std::make_unsigned_t<Word>;

/// A neighbour times its weight.
template <class Word>
[[gnu::always_inline]] constexpr InterpUnsigned<Word> interp_term(std::int32_t weight, Word value) {
  return static_cast<InterpUnsigned<Word>>(static_cast<Word>(weight)) * static_cast<InterpUnsigned<Word>>(value);
}
/// An interpolation along one axis from its weighted sum.
template <class Word>
[[gnu::always_inline]] constexpr Word interp_rounded(Word sum) {
  return static_cast<Word>(static_cast<InterpUnsigned<Word>>(sum) + (1u << (kInterpWeightBits - 1))) >>
         kInterpWeightBits;
}
/// The mean of interpolations along two and three axes.
template <class Word>
[[gnu::always_inline]] constexpr Word interp_mean(Word a, Word b) {
  using U = InterpUnsigned<Word>;
  return static_cast<Word>(static_cast<U>(a) + static_cast<U>(b) + 1) >> 1;
}
/// A third is taken for 85/256: what it multiplies are differences of predictions.
template <class Word>
[[gnu::always_inline]] constexpr Word interp_mean(Word a, Word b, Word c) {
  using U = InterpUnsigned<Word>;
  const U differences = (static_cast<U>(b) - static_cast<U>(a)) + (static_cast<U>(c) - static_cast<U>(a));
  return static_cast<Word>(static_cast<U>(a) + static_cast<U>(static_cast<Word>(differences * 85 + 128) >> 8));
}

/// The code of what a prediction misses a value by: whole steps, rounded half up.
template <class Word>
[[gnu::always_inline]] constexpr Word interp_code(Word value, Word predicted, unsigned fraction_bits) {
  using U = InterpUnsigned<Word>;
  const U half = fraction_bits > 0 ? U{1} << (fraction_bits - 1) : U{0};
  return static_cast<Word>(static_cast<U>(value) - static_cast<U>(predicted) + half) >> fraction_bits;
}
/// What a code makes of a prediction.
template <class Word>
[[gnu::always_inline]] constexpr Word interp_value(Word predicted, std::int32_t code, unsigned fraction_bits) {
  using U = InterpUnsigned<Word>;
  return static_cast<Word>(static_cast<U>(predicted) + (static_cast<U>(static_cast<Word>(code)) << fraction_bits));
}

/// The code that an encoder takes: one that has a token; 0 for a special element, which is predicted then.
template <class Word>
[[gnu::always_inline]] constexpr std::int32_t interp_kept_code(Word target, Word predicted, bool special,
                                                               unsigned fraction_bits) {
  constexpr auto kMost = static_cast<Word>(kMaxMagnitude);
  const Word whole = interp_code(target, predicted, fraction_bits);
  const Word below = whole < kMost ? whole : kMost;
  const Word nearest = below > -kMost ? below : -kMost;
  return special ? 0 : static_cast<std::int32_t>(nearest);
}
/// An element's number in units, to the nearest integer; 0 where that is not below `most` in magnitude, or no number.
template <class Word>
[[gnu::always_inline]] constexpr Word interp_units(double number, double base, double inverse, double most) {
  const double units = (number - base) * inverse;
  const double inside = units < most && units > -most ? units : 0;
  if constexpr (sizeof(Word) == sizeof(std::int32_t)) {
    return static_cast<Word>(nearest(inside));
  } else {
    return static_cast<Word>(nearest_integer(inside));
  }
}

/// What an element is before it is rounded to its type. Wide values beyond 2^51 give any number, the same everywhere.
template <class Word>
[[gnu::always_inline]] constexpr double interp_number(Word value, double unit, double base) {
  if constexpr (sizeof(Word) == sizeof(std::int32_t)) {
    return static_cast<double>(value) * unit + base;
  } else {
    return number_of(value) * unit + base;
  }
}

/// Larger codes count as this for their neighbours.
inline constexpr std::uint32_t kInterpMostMagnitude = (1u << 14) - 1;
[[gnu::always_inline]] constexpr std::uint16_t interp_magnitude(std::int32_t code) {
  const std::uint32_t magnitude = magnitude_of(code);
  return static_cast<std::uint16_t>(magnitude < kInterpMostMagnitude ? magnitude : kInterpMostMagnitude);
}

/// What says which distribution codes a point: twelve times the mean magnitude of its neighbours along the axes that
/// are odd in its class, by the class's scale.
inline constexpr std::uint32_t kInterpSpreadUnit = 12;
/// From the sum of the magnitudes on both sides along so many axes.
[[gnu::always_inline]] constexpr std::uint32_t interp_spread(std::uint32_t magnitudes, std::uint32_t axes) {
  return magnitudes * (kInterpSpreadUnit / 2 / axes);
}
struct InterpContext {
  std::uint16_t weight = 0;  ///< below 2^12
  std::uint16_t floor = 0;   ///< below 2^16
};
inline constexpr std::uint32_t kInterpMostWeight = (1u << 12) - 1;
[[gnu::always_inline]] constexpr std::uint32_t interp_context(std::uint32_t spread, InterpContext context) {
  return spread * context.weight + context.floor;
}
/// A magnitude of 1 in sums of contexts; a spread of kInterpSpreadUnit is one, too, when the weight is 1/12 of it.
inline constexpr std::uint32_t kInterpContextOne = 3072;

/// The bin of anchors.
inline constexpr std::uint32_t kInterpAnchorBin = 63;

}  // namespace quern::kernels

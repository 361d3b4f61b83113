// Entry points of the kernels that predict and code rows of which nothing depends on the row itself: rows of levels.
// The sources of a row lie as far behind those of its run's first row as the row behind that, so that they are found
// once a run. All instruction sets give the same numbers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace quern::kernels {

/// What two values and a prediction differ by.
enum class Spread : std::uint8_t {
  bend,    ///< first + second - 2 * predicted
  slope,   ///< first - second
  change,  ///< first - predicted
};
/// The same as first + factor * second + factor * predicted.
constexpr double factor_of_second(Spread kind) {
  return kind == Spread::bend ? 1.0 : kind == Spread::slope ? -1.0 : 0.0;
}
constexpr double factor_of_predicted(Spread kind) {
  return kind == Spread::bend ? -2.0 : kind == Spread::slope ? 0.0 : -1.0;
}

/// weight * floor(min(|difference| * 2^scale_bits, most))
template <class Value>
struct SpreadSource {
  const Value* first = nullptr;
  const Value* second = nullptr;
  Spread kind = Spread::bend;
  int scale_bits = 0;  ///< -31 to 15
  std::uint32_t weight = 0;

  double scale() const { return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + scale_bits) << 52); }
};

/// Magnitudes of codes beside values of a type; where those are narrow they are below this.
inline constexpr std::uint32_t kMostMagnitudes = 1u << 16;
template <class Value>
using MagnitudeOf = std::conditional_t<std::is_same_v<Value, double>, std::uint32_t, std::uint16_t>;

/// What the rows of a run are predicted and their contexts made from. All sources are those of the run's first row;
/// rows are read in blocks of kStencilBlock elements.
template <class Value>
struct RowSourcesView {
  const Value* const* taps = nullptr;  ///< integers, as weights are; weighted sums below 2^51
  const double* tap_weights = nullptr;
  std::size_t tap_count = 0;
  std::size_t pair_count = 0;  ///< the list begins with so many pairs, two taps of one weight
  unsigned weight_bits = 1;    ///< fraction bits of weights, at least 1
  /// Sums over narrow values are surely below 2^51 in any order. Encoders see to that, decoders know it from weights.
  bool exact = false;
  std::uint32_t constant = 0;
  const MagnitudeOf<Value>* const* magnitudes = nullptr;
  const std::uint32_t* magnitude_weights = nullptr;
  std::size_t magnitude_count = 0;
  const SpreadSource<Value>* spreads = nullptr;
  std::size_t spread_count = 0;
  double most_spread = 0;    ///< of a source of differences, below 2^31
  unsigned spread_bits = 0;  ///< fraction bits of the sum of all of them
};

/// Narrow values, which are 32-bit integers, are below this in magnitude: a few places beyond borders stay in range.
inline constexpr std::int64_t kMostNarrow = std::int64_t{1} << 26;

/// What a row is coded from and to, and how. Results have whole blocks of kStencilBlock elements; what is behind the
/// row is written as well, and has no meaning.
template <class Value>
struct CodedRowBuffers {
  const double* originals = nullptr;         ///< whole blocks
  double base = 0;                           ///< original that is 0 units
  double inverse = 1;                        ///< units of a difference of 1
  std::int64_t quantum = 1;                  ///< what codes count, in units of values
  std::int64_t most = 0;                     ///< codes of wide values are no further from 0
  std::int64_t most_magnitude = 0;           ///< larger magnitudes beside wide values are stored as this
  Value* values = nullptr;                   ///< predictions plus codes
  MagnitudeOf<Value>* magnitudes = nullptr;  ///< of codes
  std::int32_t* codes = nullptr;
  /// What comes back, value * unit + base, rounded to binary32 if `single`, is to differ from the original by less than
  /// this; not looked at if it is 0.
  double strict = 0;
  double unit = 1;
  bool single = false;
  /// Narrow values, and originals in units, are to be below this in magnitude; at most kMostNarrow.
  std::int64_t limit = kMostNarrow;
};

struct CodedRowResult {
  bool kept = false;   ///< all that comes back was looked at and is near enough, and no original is 0
  bool narrow = true;  ///< values that should be narrow are, so are their originals in units and magnitudes of codes;
                       ///< else codes are 0, and values have no meaning
};

/// Kernels of values that are kept in binary64, or narrow. `begin` is how far a row lies behind its run's first one,
/// `count` its elements. Results of rows are written in whole blocks of kStencilBlock.
template <class Value>
struct ValueRowKernels {
  /// predicted[x] = the sum of the taps over 2^weight_bits, halves up; levels[x] = context bin of the context sum:
  /// constant + weighted magnitudes + (the sum of all spreads >> spread_bits), modulo 2^32.
  void (*predict)(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count, std::int64_t* predicted,
                  std::uint8_t* levels);
  /// values[x] = predicted[x] + codes[x] * quantum, modulo 2^53; magnitudes[x] = |codes[x]|, beside wide values at most
  /// `most`. False when a value or magnitude that should be narrow is not.
  bool (*reconstruct)(const std::int64_t* predicted, const std::int32_t* codes, std::int64_t quantum,
                      std::uint32_t most, std::size_t count, Value* values, MagnitudeOf<Value>* magnitudes);
  /// out[2 * x] = even[x], out[2 * x + 1] = odd[x] for x < count and nothing else.
  void (*interleave)(const Value* even, const Value* odd, std::size_t count, Value* out);
  void (*interleave_magnitudes)(const MagnitudeOf<Value>* even, const MagnitudeOf<Value>* odd, std::size_t count,
                                MagnitudeOf<Value>* out);
  /// out[2 * x] = even[x] * unit + base, rounded to binary32, as bits; out[2 * x + 1] from odd[x] in the same way; for
  /// x < count and nothing else.
  void (*store_pairs)(const Value* even, const Value* odd, double unit, double base, std::size_t count,
                      std::uint32_t* out);
  /// Predicts as `predict`, and codes what originals in units, rounded to integers (wide: 0 where that is not below
  /// 2^44), differ from that by: codes are differences over `quantum`, rounded to the nearest by a reciprocal.
  CodedRowResult (*code)(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count,
                         const CodedRowBuffers<Value>& row);
  /// The context sums of a row that is coded: it was predicted as values[x] - codes[x] * quantum.
  void (*contexts)(const RowSourcesView<Value>& sources, std::size_t begin, std::size_t count, const Value* values,
                   const std::int32_t* codes, std::int64_t quantum, std::uint32_t* sums);
};

/// The same for narrow values whose weighted sums surely fit 32 bits: what magnitudes of weights sum to, times any
/// source's magnitude, plus half of 2^weight_bits is below 2^31. Weights have at least 8 fraction bits. A vector has
/// twice as many columns.
struct SmallRowKernels {
  void (*predict)(const RowSourcesView<std::int32_t>& sources, std::size_t begin, std::size_t count,
                  std::int32_t* predicted, std::uint8_t* levels);
  /// False when a value is not in [-limit, limit) or a magnitude is not below kMostMagnitudes: then they have no
  /// meaning. `limit` is a power of two, at most kMostNarrow; `quantum` is at most 2^12.
  bool (*reconstruct)(const std::int32_t* predicted, const std::int32_t* codes, std::int64_t quantum,
                      std::uint32_t limit, std::size_t count, std::int32_t* values, std::uint16_t* magnitudes);
  CodedRowResult (*code)(const RowSourcesView<std::int32_t>& sources, std::size_t begin, std::size_t count,
                         const CodedRowBuffers<std::int32_t>& row);
};

struct StencilRowKernels {
  ValueRowKernels<double> wide;
  ValueRowKernels<std::int32_t> narrow;
  SmallRowKernels small;

  template <class Value>
  const ValueRowKernels<Value>& of() const {
    if constexpr (std::is_same_v<Value, double>) {
      return wide;
    } else {
      return narrow;
    }
  }
};

}  // namespace quern::kernels

// Coordinates as integers. A unit is 1/per_metre of a metre (for integer coordinates, their own unit); distances are
// measured in fine units, 2^-kFineBits of one. A fine coordinate differs from the exact one by at most half a fine
// unit, so a distance made of two points' fine coordinates is wrong by less than two: see enforceable().
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "codecs/lidar/point_codec.h"

namespace quern::codec::lidar {

inline constexpr unsigned kFineBits = 8;
inline constexpr std::int64_t kFine = INT64_C(1) << kFineBits;
/// Coordinates beyond this many units are kept verbatim.
inline constexpr std::int64_t kMostUnits = INT64_C(1) << 40;

struct Scale {
  CoordinateType type = CoordinateType::f32;
  std::uint32_t per_metre = kUnitsPerMetre;  ///< below 2^28; 1 for integer coordinates
};

/// The fine coordinate of a stored word; none for NaN, infinity and what is too far away. The product of a binary32
/// number and an integer below 2^28 is exact in binary64.
inline std::optional<std::int64_t> fine_of(std::uint32_t word, const Scale& scale) {
  if (scale.type == CoordinateType::i32) return std::int64_t{static_cast<std::int32_t>(word)} * kFine;
  const double units = static_cast<double>(std::bit_cast<float>(word)) * scale.per_metre;
  if (!(std::fabs(units) < static_cast<double>(kMostUnits))) return std::nullopt;
  return static_cast<std::int64_t>(std::floor(units * static_cast<double>(kFine) + 0.5));
}

/// The word that a decoder makes of a coordinate in units: one division in binary64, then rounding to binary32.
/// Integers beyond 32 bits become the nearest that fits.
inline std::uint32_t word_of(std::int64_t units, const Scale& scale) {
  if (scale.type == CoordinateType::i32) {
    const std::int64_t inside = units < INT32_MIN ? INT32_MIN : units > INT32_MAX ? INT32_MAX : units;
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(inside));
  }
  return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<double>(units) / scale.per_metre));
}

/// The largest distance between fine coordinates, in fine units, that proves a distance of at most `max_error` units.
/// Each of the six coordinates is off by half a fine unit at most, so the difference is off by at most sqrt(3) < 2.
constexpr std::int64_t enforceable(std::uint32_t max_error) { return std::int64_t{max_error} * kFine - 2; }

}  // namespace quern::codec::lidar

// A sensor whose scans are images of ranges, as those of Ouster: where the beam of each pixel points, in whole numbers,
// so that the points of an image are the same on every machine. Stored form and formulas: docs/format-lidar.md, 7,
// "Range images".
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::lidar {

struct RangeSensor {
  static constexpr std::uint64_t kMostRows = 1024;
  static constexpr std::uint64_t kMostColumns = 8192;
  static constexpr std::int64_t kMostAngle = 360'000'000;        ///< absolute, millionths of a degree
  static constexpr std::int64_t kMostOffset = INT64_C(1) << 20;  ///< absolute, micrometres
  static constexpr std::int64_t kMostShift = INT64_C(1) << 27;   ///< absolute, micrometres
  static constexpr std::int64_t kOne = INT64_C(1) << 30;         ///< of rotations, sines and cosines
  static constexpr std::uint32_t kMostRange = (1U << 20) - 1;    ///< millimetres

  struct Beam {
    std::int64_t altitude = 0;  ///< millionths of a degree
    std::int64_t azimuth = 0;
    std::int64_t pixel_shift = 0;  ///< columns that destaggering moves the row to the right
  };

  std::uint64_t columns = 0;
  bool is_destaggered = false;  ///< the images; else a column is what was measured at once
  std::int64_t origin = 0;      ///< micrometres from the axis to where beams begin
  std::int64_t origin_x = 0;    ///< the same as a place: outwards
  std::int64_t origin_z = 0;    ///< and upwards
  Vector<Beam> beams;           ///< a row each
  /// From the lidar's coordinates to the sensor's: rows of a 3 x 4 matrix, rotation in units of 2^-30, translation in
  /// micrometres.
  std::array<std::int64_t, 12> transform{kOne, 0, 0, 0, 0, kOne, 0, 0, 0, 0, kOne, 0};

  std::uint64_t pixels() const { return beams.size() * columns; }
};

/// Whether all numbers lie within their limits.
bool is_range_sensor(const RangeSensor& sensor);

Vector<std::uint8_t> write_range_sensor(const RangeSensor& sensor);
/// Any bytes are safe. Fails with `corrupt`.
Result<RangeSensor> read_range_sensor(std::span<const std::uint8_t> bytes);

/// Sine and cosine of an angle of millionths of a degree, in units of 2^-30, within 8 units.
struct SineCosine {
  std::int64_t sine = 0;
  std::int64_t cosine = RangeSensor::kOne;
};
SineCosine sine_cosine(std::int64_t angle);

/// x, y, z of each pixel as bits of binary32 metres, row after row; NaN where the range is 0. `ranges`: a little-endian
/// 32-bit number of millimetres for each pixel. Fails with `corrupt` for ranges above kMostRange. O(pixels).
Result<Vector<std::uint32_t>> project(const RangeSensor& sensor, std::span<const std::uint8_t> ranges);

}  // namespace quern::lidar

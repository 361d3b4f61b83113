// The scan codec: one LiDAR scan, and perhaps a prediction of it. A scan is a list of points, each with three
// coordinates and with columns of attributes; it is no grid, so this codec has an interface of its own beside
// ArrayCodec.
//
// The bound is a distance, and it holds in both directions: every point of the scan has a decoded one within it, and
// every decoded point has one of the scan within it. The encoder decodes its own stream and checks both in exact
// integers before it returns. Nothing in a stream is a floating point number except coordinates kept bit for bit.
// Functions are safe to call from several threads at once; they take memory from the scope's resource
// (quern/memory.h) and may throw std::bad_alloc. Format: docs/format-lidar.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern::codec::lidar {

/// Of x, y and z. The numbers are stored.
enum class CoordinateType : std::uint8_t {
  f32 = 0,  ///< metres, any bit pattern
  i32 = 1,  ///< whole units of any length
};

/// What comes back. The numbers are stored.
enum class Mode : std::uint8_t {
  set = 0,     ///< a set of points under the bound; their number is the codec's choice, their order is lost
  points = 1,  ///< every point under the bound, in the order of the scan
  exact = 2,   ///< every point bit for bit, in the order of the scan
};

/// Bounds of binary32 coordinates are whole numbers of this many parts of a metre.
inline constexpr std::uint32_t kUnitsPerMetre = 10000;
inline constexpr std::uint32_t kMostMaxError = 1U << 20;
inline constexpr std::uint64_t kMostPoints = UINT64_C(1) << 28;
inline constexpr std::size_t kMostColumns = 64;

/// One attribute of every point: `element_bytes` (1, 2, 4 or 8) little-endian bytes each, point after point.
struct ColumnView {
  std::uint8_t element_bytes = 1;
  std::span<const std::uint8_t> values;
};

/// A scan in the caller's memory. `words`: bit patterns of x, y, z of the first point, then of the next.
struct CloudView {
  CoordinateType type = CoordinateType::f32;
  std::span<const std::uint32_t> words;
  std::span<const ColumnView> columns;

  std::uint64_t points() const { return words.size() / 3; }
};

struct Column {
  std::uint8_t element_bytes = 1;
  Vector<std::uint8_t> values;
};

/// A scan that was decoded. In mode `set`, a point's attributes are those of the nearest point of the scan.
struct Cloud {
  CoordinateType type = CoordinateType::f32;
  Vector<std::uint32_t> words;
  Vector<Column> columns;

  std::uint64_t points() const { return words.size() / 3; }
};

/// A place in units, within +-kMostPredictedUnits, where a point of the scan is expected: by earlier scans of the same
/// place, say; or, with weight 0, where something is known to stand, whether the sensor sees it or not. A prediction of
/// points of weight 0 alone is none. A wrong prediction costs bytes, never accuracy.
struct PredictedPoint {
  std::array<std::int64_t, 3> at{};
  std::uint8_t weight = 1;  ///< 0: known; 1 to kMostPredictedWeight: expected, the more, the surer

  bool operator==(const PredictedPoint&) const = default;
};
inline constexpr std::uint8_t kMostPredictedWeight = 8;
inline constexpr std::int64_t kMostPredictedUnits = INT64_C(1) << 28;
/// In any order; empty: none. A decoder needs that of the encoder.
using Prediction = std::span<const PredictedPoint>;

struct ScanOptions {
  Mode mode = Mode::set;
  /// The bound: in units of 1/kUnitsPerMetre for binary32, in whole units for integers; 1..kMostMaxError. Not used by
  /// mode `exact`.
  std::uint32_t max_error = 500;
  /// Mode `set`: points with NaN or infinity are kept bit for bit; else they are dropped. Other modes keep them always.
  bool keep_non_finite = false;
  /// Independent slices that a block of space is cut into; 0: one for each kSliceSites lattice sites. The bytes depend
  /// on it.
  std::uint32_t slices = 0;
};

/// What a stream says of itself.
struct ScanInfo {
  Mode mode = Mode::set;
  CoordinateType type = CoordinateType::f32;
  std::uint32_t max_error = 0;       ///< as asked for; 0 in mode `exact`
  std::uint32_t achieved_error = 0;  ///< largest distance in either direction, rounded up to units
  std::uint64_t source_points = 0;
  std::uint64_t points = 0;           ///< that decoding gives
  std::uint64_t dropped_points = 0;   ///< NaN or infinity in mode `set`
  std::uint64_t verbatim_points = 0;  ///< whose coordinates are kept bit for bit beside the octree
  std::uint64_t slices = 0;
  bool rays = false;       ///< by tool R
  bool predicted = false;  ///< decoding needs the encoder's prediction
  std::uint64_t geometry_bytes = 0;
  std::uint64_t order_bytes = 0;
  std::uint64_t column_bytes = 0;
};

/// Encodes a scan. Fails with `invalid_argument` on columns of other lengths, options out of range, or more than
/// kMostPoints. Runs slices and columns as tasks on `runner`; the bytes do not depend on it. With a prediction the scan
/// is coded with and without it, and the smaller stream is kept.
Result<Vector<std::uint8_t>> encode_scan(const CloudView& cloud, const ScanOptions& options, TaskRunner& runner,
                                         Prediction prediction = {});

/// A scan as encode_scan() codes it, and what it decodes to.
struct CodedScan {
  Vector<std::uint8_t> bytes;
  Vector<std::uint32_t> words;  ///< as in Cloud; from decoding the bytes
};

/// As encode_scan() with each of the predictions; what they share is done once. Takes that much memory for each. A scan
/// whose geometry is clearly larger than that with another prediction, by kClearlyLarger bytes, is left out: empty.
inline constexpr std::uint64_t kClearlyLarger = 512;
Result<Vector<CodedScan>> encode_scans(const CloudView& cloud, const ScanOptions& options, TaskRunner& runner,
                                       std::span<const Prediction> predictions);

/// Reads the header alone. Any bytes are safe.
Result<ScanInfo> scan_info(std::span<const std::uint8_t> bytes);

/// Decodes a scan. Any bytes are safe: the answer is a scan or a status. Fails with `memory_limit` where the header
/// promises more than `most_points`, with `invalid_argument` where `prediction` is not the encoder's. Takes about 200
/// bytes for each point and 150 for each predicted one.
Result<Cloud> decode_scan(std::span<const std::uint8_t> bytes, std::uint64_t most_points, TaskRunner& runner,
                          Prediction prediction = {});

}  // namespace quern::codec::lidar

// What a drive says of a frame beside its scan. Stored form: docs/format-lidar.md, "Drives".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <quern/status.h>

#include "lidar/cloud/point_cloud.h"
#include "lidar/predict/pose.h"
#include "lidar/predict/sensor_rays.h"
#include "storage/content_hash.h"

namespace quern::lidar {

inline constexpr std::size_t kMaxFrameNameBytes = 200;
inline constexpr std::uint64_t kMaxFileHeaderBytes = UINT64_C(1) << 24;
/// Frames from a key frame to the next: what decoding one frame can need.
inline constexpr std::uint64_t kMostKeyDistance = 64;
/// Frames back to a reference, at most: what readers remember, so that no frame is decoded twice for another.
inline constexpr std::uint64_t kMostReferenceDistance = 8;
/// Tiles of a history on each side of the one that a predicted frame stands in.
inline constexpr std::uint64_t kMostReach = 8;

/// The coordinates of the scan as they are coded. The numbers are stored.
enum class CodedKind : std::uint8_t {
  f32 = 0,             ///< as binary32
  scaled = 1,          ///< as whole numbers of a grid
  grid_of_f64 = 2,     ///< binary64 that was moved to a grid of 0.1 mm
  f64_remainders = 3,  ///< binary64 rounded to binary32, and three columns with what rounding took
  projected = 4,       ///< of a range image: from its column `range` and the sensor in its header
};

/// Whether coordinates decode to binary32.
constexpr bool is_f32(CodedKind kind) { return kind == CodedKind::f32 || kind == CodedKind::projected; }

struct ColumnDescription {
  String name;
  DType type = DType::f32;
};

struct FrameDescription {
  String name;                             ///< see is_frame_name()
  std::optional<std::int64_t> time_stamp;  ///< nanoseconds; of what epoch, who records a drive decides
  CodedKind kind = CodedKind::f32;
  CoordinateGrid grid;                      ///< of kinds scaled and grid_of_f64
  FileFormat format = FileFormat::unknown;  ///< of the file the frame came from
  std::uint64_t source_bytes = 0;           ///< of that file; 0: not known
  std::uint64_t rows = 0;                   ///< PointCloud::rows
  Vector<ColumnDescription> columns;        ///< attributes, without remainders
  Vector<std::uint8_t> file_header;         ///< PointCloud::file_header
  std::optional<Pose> pose;                 ///< where the sensor stood
  std::optional<SensorRays> rays;           ///< of the sensor; a key frame's
  /// Epoch of the history that predicts this frame and those that have it as key frame; a key frame's.
  std::optional<storage::ContentHash> epoch;
  /// The key frame's epoch predicts this frame by its tiles so many tiles away at most. Nothing: it does not.
  std::optional<std::uint64_t> reach;
  /// How many frames before this one the key frame lies, whose rays the prediction has, and frames that predict this
  /// one, 1 to key_distance each, rising. 0 and none: no frame predicts it.
  std::uint64_t key_distance = 0;
  Vector<std::uint64_t> references;

  /// The prediction has known points beside expected ones. Of predicted frames alone.
  bool known = false;

  bool is_predicted() const { return !references.empty() || reach.has_value(); }
};

/// A name that may become a file's: 1 to 200 bytes of UTF-8 without control characters, '/' and '\', not beginning with
/// a dot.
bool is_frame_name(std::string_view name);
/// The nearest name to `text` that is one.
String frame_name_of(std::string_view text);

/// A name of a column: at most 255 bytes of UTF-8 without control characters.
bool is_column_name(std::string_view name);

/// May throw std::bad_alloc.
Vector<std::uint8_t> write_description(const FrameDescription& description);
/// Any bytes are safe. Fails with `corrupt` or `unsupported_version`; allocates in proportion to `bytes`.
Result<FrameDescription> read_description(std::span<const std::uint8_t> bytes);

}  // namespace quern::lidar

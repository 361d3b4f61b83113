// A point cloud as files hold it: coordinates in the type they came in, columns of attributes, and where it came from.
#pragma once

#include <array>
#include <cstdint>

#include <quern/dtype.h>
#include <quern/memory.h>

namespace quern::lidar {

/// The numbers are stored in drives.
enum class FileFormat : std::uint8_t {
  unknown = 0,
  bin = 1,
  pcd = 2,
  ply = 3,
  npy = 4,
  las = 5,
  point_cloud2 = 6,  ///< a message of a bag
  range_image = 7,   ///< an image of ranges
};
inline constexpr FileFormat kLastFileFormat = FileFormat::range_image;

/// How coordinates are held. The numbers are stored in drives.
enum class CoordinateKind : std::uint8_t {
  f32 = 0,     ///< binary32 metres, any bit pattern
  scaled = 1,  ///< whole numbers; a coordinate is offset + number * scale in binary64
  f64 = 2,     ///< binary64 metres, any bit pattern
};

/// One attribute: a little-endian element of `type` for each point.
struct CloudColumn {
  String name;
  DType type = DType::f32;
  Vector<std::uint8_t> values;
};

/// Of kind `scaled`, by axis: x, y, z.
struct CoordinateGrid {
  std::array<double, 3> scale{1, 1, 1};
  std::array<double, 3> offset{0, 0, 0};

  friend bool operator==(const CoordinateGrid&, const CoordinateGrid&) = default;
};

/// Owns its values. `words` is used by kinds f32 (bit patterns) and scaled (two's complement), `doubles` by kind f64;
/// either has x, y, z of the first point, then of the next.
struct PointCloud {
  CoordinateKind kind = CoordinateKind::f32;
  Vector<std::uint32_t> words;
  Vector<double> doubles;
  CoordinateGrid grid;
  Vector<CloudColumn> columns;
  std::uint64_t rows = 0;  ///< of an organised cloud, whose points are rows * columns of a picture; 0: it is none
  FileFormat format = FileFormat::unknown;  ///< of the file it came from
  std::uint64_t source_bytes = 0;           ///< of that file; 0: not known
  Vector<std::uint8_t> file_header;         ///< LAS: the file's bytes before its points; point_cloud2: its layout;
                                            ///< range_image: its sensor

  std::uint64_t points() const { return (kind == CoordinateKind::f64 ? doubles.size() : words.size()) / 3; }
  /// Coordinates of a point in binary64.
  std::array<double, 3> position(std::uint64_t point) const;
  bool is_finite(std::uint64_t point) const;
  /// Null where there is none of that name.
  const CloudColumn* column(const char* name) const;
};

/// An element of a column in binary64. Integers above 2^53 are rounded.
double element_as_double(const CloudColumn& column, std::uint64_t point);
/// Whether binary64 holds the element exactly.
bool is_exact_as_double(const CloudColumn& column, std::uint64_t point);

}  // namespace quern::lidar

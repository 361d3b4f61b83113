// KITTI (x, y, z, intensity) and nuScenes (and ring): binary32 numbers without a header. How many a point has is asked
// for, or told from the name, or from size and values where only one answer is possible.
#include <algorithm>
#include <array>
#include <cmath>

#include "lidar/cloud/little_endian.h"
#include "lidar/files/formats.h"

namespace quern::lidar {
namespace {

constexpr std::array<const char*, 2> kNames = {"intensity", "ring"};
constexpr double kFarthest = 1e5;    // metres that a scanner may see, with room
constexpr double kSmallest = 1e-20;  // a number below that is no coordinate but bits of something else
constexpr double kMostIntensity = 65535;
constexpr double kMostRing = 255;

float value(std::span<const std::uint8_t> bytes, std::uint64_t index) {
  return load_le<float>(bytes.data() + 4 * index);
}

bool is_coordinate(float x) {
  const double size = std::abs(static_cast<double>(x));
  return !std::isfinite(x) || size == 0 || (size > kSmallest && size < kFarthest);
}

/// Whether points of so many numbers make sense: coordinates, an intensity, a ring.
bool are_points(std::span<const std::uint8_t> bytes, unsigned columns) {
  if (bytes.size() % (4 * columns) != 0) return false;
  for (std::uint64_t at = 0; at < bytes.size() / 4; at += columns) {
    for (unsigned axis = 0; axis < 3; ++axis)
      if (!is_coordinate(value(bytes, at + axis))) return false;
    const auto intensity = static_cast<double>(value(bytes, at + 3));
    if (!(intensity >= 0 && intensity <= kMostIntensity) || (intensity != 0 && intensity < kSmallest)) return false;
    const double ring = columns == 5 ? static_cast<double>(value(bytes, at + 4)) : 0;
    if (!(ring >= 0 && ring <= kMostRing) || ring != std::floor(ring)) return false;
  }
  return true;
}

Result<unsigned> guess_columns(std::string_view path, std::span<const std::uint8_t> bytes) {
  if (path.ends_with(".pcd.bin") && bytes.size() % 20 == 0) return 5U;
  if (bytes.empty()) return 4U;
  const bool four = are_points(bytes, 4);
  const bool five = are_points(bytes, 5);
  if (four != five) return four ? 4U : 5U;
  if (four)
    return Status(StatusCode::invalid_argument,
                  "points of 4 and of 5 numbers are both possible; give --columns 4 or 5");
  return Status(StatusCode::invalid_argument,
                "the bytes do not look like points of 4 or 5 binary32 numbers; if they are, give --columns 4 or 5");
}

}  // namespace

Result<PointCloud> read_bin(std::string_view path, std::span<const std::uint8_t> bytes, const ReadOptions& options) {
  unsigned columns = options.bin_columns;
  if (columns == 0) {
    QUERN_ASSIGN_OR_RETURN(columns, guess_columns(path, bytes));
  }
  if (columns < 4 || columns > 5)
    return Status(StatusCode::invalid_argument, "points of .bin files have 4 or 5 numbers");
  const std::size_t row = 4 * columns;
  if (bytes.size() % row != 0)
    return Status(StatusCode::truncated,
                  "{0} bytes are not whole points of {1} numbers; the file is cut short or has "
                  "another number of columns",
                  static_cast<std::int64_t>(bytes.size()), columns);
  const std::size_t points = bytes.size() / row;
  QUERN_RETURN_IF_ERROR(check_fits(points, row, options.most_bytes));
  PointCloud out;
  out.words.reserve(3 * points);
  for (unsigned c = 3; c < columns; ++c) out.columns.push_back({kNames[c - 3], DType::f32, {}});
  for (CloudColumn& column : out.columns) column.values.reserve(4 * points);
  for (std::size_t i = 0; i < points; ++i) {
    const std::uint8_t* const at = bytes.data() + i * row;
    for (unsigned axis = 0; axis < 3; ++axis) out.words.push_back(load_le<std::uint32_t>(at + 4 * axis));
    for (unsigned c = 3; c < columns; ++c)
      out.columns[c - 3].values.insert(out.columns[c - 3].values.end(), at + 4 * c, at + 4 * c + 4);
  }
  return out;
}

namespace {

/// Whether binary32 holds all elements.
bool fits_f32(const CloudColumn& column, std::uint64_t points) {
  for (std::uint64_t i = 0; i < points; ++i) {
    const double element = element_as_double(column, i);
    if (!is_exact_as_double(column, i) || static_cast<double>(static_cast<float>(element)) != element) return false;
  }
  return true;
}

/// The columns a file gets: all where it came from such a file, else the intensity under one of its names.
Vector<const CloudColumn*> chosen_columns(const PointCloud& cloud) {
  Vector<const CloudColumn*> out;
  const bool all_f32 = std::all_of(cloud.columns.begin(), cloud.columns.end(),
                                   [](const CloudColumn& column) { return column.type == DType::f32; });
  if (all_f32 && (cloud.columns.size() == 1 || (cloud.columns.size() == 2 && cloud.columns[1].name == "ring"))) {
    for (const CloudColumn& column : cloud.columns) out.push_back(&column);
    return out;
  }
  for (const char* name : {"intensity", "reflectivity", "reflectance"}) {
    const CloudColumn* const column = cloud.column(name);
    if (column != nullptr && (column->type == DType::f32 || fits_f32(*column, cloud.points()))) return {column};
  }
  return {nullptr};
}

void append_element(const CloudColumn* column, std::uint64_t point, Vector<std::uint8_t>& out) {
  if (column != nullptr && column->type == DType::f32) {
    out.insert(out.end(), column->values.data() + 4 * point, column->values.data() + 4 * point + 4);
  } else {
    append_le(column == nullptr ? 0.0F : static_cast<float>(element_as_double(*column, point)), out);
  }
}

}  // namespace

Result<CloudFile> write_bin(const PointCloud& cloud) {
  CloudFile out;
  const auto chosen = chosen_columns(cloud);
  for (const CloudColumn& column : cloud.columns)
    if (std::find(chosen.begin(), chosen.end(), &column) == chosen.end()) out.left_out.push_back(column.name);
  for (std::uint64_t i = 0; i < cloud.points(); ++i) {
    const auto at = cloud.position(i);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (cloud.kind == CoordinateKind::f32) {
        append_le(cloud.words[static_cast<std::size_t>(3 * i) + axis], out.bytes);
        continue;
      }
      const auto rounded = static_cast<float>(at[axis]);
      if (static_cast<double>(rounded) != at[axis])
        return Status(StatusCode::unsupported,
                      "point {0}: its coordinates need more than the 32 bits of .bin; choose "
                      "pcd, ply, npy or las",
                      static_cast<std::int64_t>(i));
      append_le(rounded, out.bytes);
    }
    for (const CloudColumn* column : chosen) append_element(column, i, out.bytes);
  }
  return out;
}

}  // namespace quern::lidar

// LAS 1.0 to 1.4, uncompressed. The bytes before the points are kept, so that a file that is written again has its
// coordinate system and, in mode exact, is the same byte for byte, but for what followed its points.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "codecs/lidar/point_codec.h"
#include "lidar/cloud/little_endian.h"
#include "lidar/drive/frame_description.h"
#include "lidar/files/formats.h"
#include "lidar/files/las_layout.h"

namespace quern::lidar {
namespace {

struct Header {
  unsigned minor = 0;
  std::uint64_t points_at = 0;
  unsigned format = 0;
  std::uint64_t record_bytes = 0;
  std::uint64_t points = 0;
  CoordinateGrid grid;
};

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

Result<Header> read_header(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kLasHeaderBytes) return Status(StatusCode::truncated, "the LAS file ends in its header");
  if (std::memcmp(bytes.data(), "LASF", 4) != 0) return corrupt("the file does not begin as a LAS file");
  Header out;
  const std::uint8_t* const at = bytes.data();
  out.minor = at[kLasMinorAt];
  if (at[kLasMinorAt - 1] != 1 || out.minor > 4)
    return Status(StatusCode::unsupported, "the LAS file has version {0}.{1}; 1.0 to 1.4 are read", at[kLasMinorAt - 1],
                  out.minor);
  if (at[kLasFormatAt] >= 0x40)
    return Status(StatusCode::unsupported,
                  "the points are compressed (LAZ); make a LAS file of it with laszip -i in.laz "
                  "-o out.las, or pdal translate in.laz out.las");
  out.format = at[kLasFormatAt];
  out.record_bytes = load_le<std::uint16_t>(at + kLasRecordBytesAt);
  const std::uint64_t least = las_record_bytes(out.format);
  if (least == 0)
    return Status(StatusCode::unsupported, "the LAS file has point format {0}; 0 to 10 are read", out.format);
  if (out.record_bytes < least) return corrupt("the points of the LAS file are shorter than their format");
  out.points_at = load_le<std::uint32_t>(at + kLasPointsAt);
  out.points = load_le<std::uint32_t>(at + kLasCountAt);
  const std::uint64_t header_bytes = load_le<std::uint16_t>(at + kLasHeaderSizeAt);
  if (out.minor == 4 && header_bytes >= kLasHeaderBytes14 && bytes.size() >= kLasHeaderBytes14)
    out.points = std::max<std::uint64_t>(out.points, load_le<std::uint64_t>(at + kLasCount64At));
  if (out.points_at < kLasHeaderBytes || header_bytes < kLasHeaderBytes || header_bytes > out.points_at)
    return corrupt("the LAS header says that points begin inside it");
  if (out.points_at > bytes.size() || out.points > (bytes.size() - out.points_at) / out.record_bytes)
    return Status(StatusCode::truncated, "the LAS file ends before its last point");
  for (std::size_t axis = 0; axis < 3; ++axis) {
    out.grid.scale[axis] = load_le<double>(at + kLasScaleAt + 8 * axis);
    out.grid.offset[axis] = load_le<double>(at + kLasOffsetAt + 8 * axis);
    if (!std::isfinite(out.grid.scale[axis]) || out.grid.scale[axis] == 0 || !std::isfinite(out.grid.offset[axis]))
      return corrupt("scale or offset of the LAS header is no number");
  }
  return out;
}

}  // namespace

Result<PointCloud> read_las(std::span<const std::uint8_t> bytes, std::uint64_t most_bytes) {
  QUERN_ASSIGN_OR_RETURN(const Header header, read_header(bytes));
  QUERN_ASSIGN_OR_RETURN(const auto fields, las_fields(header.format, header.record_bytes));
  std::uint64_t point_bytes = 3 * sizeof(std::uint32_t);
  for (const RawField& field : fields) point_bytes += dtype_bytes(field.type);
  QUERN_RETURN_IF_ERROR(check_fits(header.points, point_bytes, most_bytes));
  PointCloud out;
  out.kind = CoordinateKind::scaled;
  out.grid = header.grid;
  out.words.reserve(static_cast<std::size_t>(3 * header.points));
  const std::uint8_t* const records = bytes.data() + header.points_at;
  for (std::uint64_t i = 0; i < header.points; ++i)
    for (std::size_t axis = 0; axis < 3; ++axis)
      out.words.push_back(load_le<std::uint32_t>(records + i * header.record_bytes + 4 * axis));
  for (const RawField& field : fields) {
    const std::size_t width = dtype_bytes(field.type);
    CloudColumn column{field.name, field.type, Vector<std::uint8_t>(static_cast<std::size_t>(header.points) * width)};
    for (std::uint64_t i = 0; i < header.points; ++i)
      std::memcpy(column.values.data() + i * width, records + i * header.record_bytes + field.offset, width);
    out.columns.push_back(std::move(column));
  }
  if (header.points_at <= kMaxFileHeaderBytes)
    out.file_header.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header.points_at));
  return out;
}

namespace {

constexpr unsigned kMadeMinor = 2;
constexpr double kStep = 1e-4;

/// A cloud whose coordinates are whole numbers of a grid. Fails where they would have to be moved.
Result<PointCloud> on_grid(const PointCloud& cloud) {
  PointCloud out;
  out.kind = CoordinateKind::scaled;
  out.columns = cloud.columns;
  out.grid.scale = {kStep, kStep, kStep};
  for (std::uint64_t i = 0; i < cloud.points(); ++i) {
    const auto at = cloud.position(i);
    for (const double coordinate : at) {
      const double steps = std::round(coordinate / kStep);
      const bool fits = std::abs(steps) <= static_cast<double>(std::numeric_limits<std::int32_t>::max());
      // Decoded coordinates are whole steps, rounded to binary32.
      const double back = steps / codec::lidar::kUnitsPerMetre;
      const bool same =
          fits && (cloud.kind == CoordinateKind::f32 ? static_cast<double>(static_cast<float>(back)) == coordinate
                                                     : back == coordinate);
      if (!same)
        return Status(StatusCode::unsupported,
                      "point {0}: its coordinates are no whole steps of 0.1 mm, which LAS files "
                      "are written in; choose pcd, ply, npy or bin",
                      static_cast<std::int64_t>(i));
      out.words.push_back(static_cast<std::uint32_t>(static_cast<std::int32_t>(steps)));
    }
  }
  return out;
}

/// The point format and record whose fields are these columns; the one of the file's own header comes first.
struct Record {
  unsigned format = 0;
  std::uint64_t bytes = 20;
  Vector<RawField> fields;
};

bool has_columns(const PointCloud& cloud, const Vector<RawField>& fields) {
  return std::equal(cloud.columns.begin(), cloud.columns.end(), fields.begin(), fields.end(),
                    [](const CloudColumn& c, const RawField& f) { return c.name == f.name && c.type == f.type; });
}

/// A header from the file the cloud came from, where it fits the columns; else empty.
Result<Vector<std::uint8_t>> own_header(const PointCloud& cloud, Record& record) {
  if (cloud.file_header.size() < kLasHeaderBytes) return Vector<std::uint8_t>();
  const std::uint8_t* const at = cloud.file_header.data();
  record.format = at[kLasFormatAt];
  record.bytes = load_le<std::uint16_t>(at + kLasRecordBytesAt);
  if (las_record_bytes(record.format) == 0 || record.bytes < las_record_bytes(record.format))
    return Vector<std::uint8_t>();
  QUERN_ASSIGN_OR_RETURN(record.fields, las_fields(record.format, record.bytes));
  const std::uint64_t header_bytes = load_le<std::uint16_t>(at + kLasHeaderSizeAt);
  const bool fits = std::memcmp(at, "LASF", 4) == 0 && has_columns(cloud, record.fields) &&
                    load_le<std::uint32_t>(at + kLasPointsAt) == cloud.file_header.size() &&
                    (at[kLasMinorAt] < 4 || header_bytes >= kLasHeaderBytes14) &&
                    header_bytes <= cloud.file_header.size();
  return fits ? cloud.file_header : Vector<std::uint8_t>();
}

Vector<std::uint8_t> new_header(const PointCloud& cloud, const Record& record) {
  Vector<std::uint8_t> out(kLasHeaderBytes);
  std::uint8_t* const at = out.data();
  std::memcpy(at, "LASF", 4);
  at[kLasMinorAt - 1] = 1;
  at[kLasMinorAt] = kMadeMinor;
  std::memcpy(at + 58, "quern", 5);
  store_le(static_cast<std::uint16_t>(kLasHeaderBytes), at + kLasHeaderSizeAt);
  store_le(static_cast<std::uint32_t>(kLasHeaderBytes), at + kLasPointsAt);
  at[kLasFormatAt] = static_cast<std::uint8_t>(record.format);
  store_le(static_cast<std::uint16_t>(record.bytes), at + kLasRecordBytesAt);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    store_le(cloud.grid.scale[axis], at + kLasScaleAt + 8 * axis);
    store_le(cloud.grid.offset[axis], at + kLasOffsetAt + 8 * axis);
  }
  return out;
}

void write_box(const PointCloud& cloud, std::uint8_t* at) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double low = 0;
    double high = 0;
    for (std::uint64_t i = 0; i < cloud.points(); ++i) {
      const double value = cloud.position(i)[axis];
      low = i == 0 ? value : std::min(low, value);
      high = i == 0 ? value : std::max(high, value);
    }
    store_le(high, at + kLasBoxAt + 16 * axis);
    store_le(low, at + kLasBoxAt + 16 * axis + 8);
  }
}

/// Whether the first counts of a header have to be 0, because the format is newer than they are. Versions before 1.4
/// have no others, though some files have a new format in them.
bool has_new_counts_alone(unsigned format, const std::uint8_t* at) { return format >= 6 && at[kLasMinorAt] >= 4; }

/// Points by their number of return, which the lowest bits of the field tell.
void write_returns(const PointCloud& cloud, unsigned format, std::uint8_t* at) {
  const bool is_new = format >= 6;
  std::array<std::uint64_t, 15> counts{};
  const CloudColumn* const returns = cloud.column("returns");
  for (std::uint64_t i = 0; returns != nullptr && i < cloud.points(); ++i) {
    const unsigned number = returns->values[static_cast<std::size_t>(i)] & (is_new ? 15U : 7U);
    if (number >= 1 && number <= (is_new ? 15U : 5U)) ++counts[number - 1];
  }
  for (std::size_t i = 0; i < 5; ++i)
    store_le(has_new_counts_alone(format, at) ? 0U : static_cast<std::uint32_t>(counts[i]), at + kLasReturnsAt + 4 * i);
  if (at[kLasMinorAt] < 4) return;
  for (std::size_t i = 0; i < counts.size(); ++i) store_le(counts[i], at + kLasReturns64At + 8 * i);
}

/// Counts and box of a cloud that is not the file's any more. What followed the points is not there any more, either.
void update_header(const PointCloud& cloud, unsigned format, Vector<std::uint8_t>& header) {
  std::uint8_t* const at = header.data();
  store_le(has_new_counts_alone(format, at) ? 0U : static_cast<std::uint32_t>(cloud.points()), at + kLasCountAt);
  if (at[kLasMinorAt] >= 4) store_le(cloud.points(), at + kLasCount64At);
  write_returns(cloud, format, at);
  write_box(cloud, at);
}

/// What followed the points (LAS 1.3: waveforms, 1.4: extended records) is not kept.
void drop_what_followed(Vector<std::uint8_t>& header) {
  std::uint8_t* const at = header.data();
  const std::uint64_t header_bytes = load_le<std::uint16_t>(at + kLasHeaderSizeAt);
  if (at[kLasMinorAt] >= 3 && header_bytes >= kLasExtendedAt) store_le(std::uint64_t{0}, at + kLasWaveformAt);
  if (at[kLasMinorAt] >= 4) std::memset(at + kLasExtendedAt, 0, 12);
}

/// Whether the header's counts are those of the cloud: then the points are the file's own, moved at most.
bool counts_points(const PointCloud& cloud, const Vector<std::uint8_t>& header) {
  const std::uint64_t old = load_le<std::uint32_t>(header.data() + kLasCountAt);
  const std::uint64_t count = header[kLasMinorAt] >= 4 ? load_le<std::uint64_t>(header.data() + kLasCount64At) : old;
  return std::max(old, count) == cloud.points();
}

bool is_in_box(const PointCloud& cloud, const Vector<std::uint8_t>& header) {
  for (std::uint64_t i = 0; i < cloud.points(); ++i) {
    const auto at = cloud.position(i);
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (!(at[axis] <= load_le<double>(header.data() + kLasBoxAt + 16 * axis) &&
            at[axis] >= load_le<double>(header.data() + kLasBoxAt + 16 * axis + 8)))
        return false;
  }
  return true;
}

/// A record for columns of any names: those that LAS knows go to their places, the others are left out.
Record chosen_record(const PointCloud& cloud) {
  Record out;
  out.format = cloud.column("gps_time") != nullptr ? 1 : 0;
  if (cloud.column("red") != nullptr) out.format += 2;
  out.bytes = las_record_bytes(out.format);
  const auto fields = las_fields(out.format, out.bytes);
  if (fields.ok()) out.fields = *fields;
  return out;
}

void append_records(const PointCloud& cloud, const Record& record, CloudFile& out) {
  const std::size_t begin = out.bytes.size();
  out.bytes.resize(begin + static_cast<std::size_t>(cloud.points() * record.bytes));
  std::uint8_t* const records = out.bytes.data() + begin;
  for (std::uint64_t i = 0; i < cloud.points(); ++i)
    for (std::size_t axis = 0; axis < 3; ++axis)
      store_le(cloud.words[static_cast<std::size_t>(3 * i) + axis], records + i * record.bytes + 4 * axis);
  for (const CloudColumn& column : cloud.columns) {
    const auto field = std::find_if(record.fields.begin(), record.fields.end(),
                                    [&](const RawField& f) { return f.name == column.name && f.type == column.type; });
    if (field == record.fields.end()) {
      out.left_out.push_back(column.name);
      continue;
    }
    const std::size_t width = dtype_bytes(column.type);
    for (std::uint64_t i = 0; i < cloud.points(); ++i)
      std::memcpy(records + i * record.bytes + field->offset, column.values.data() + i * width, width);
  }
}

}  // namespace

Result<CloudFile> write_las(const PointCloud& given) {
  PointCloud moved;
  if (given.kind != CoordinateKind::scaled) {
    QUERN_ASSIGN_OR_RETURN(moved, on_grid(given));
  }
  const PointCloud& cloud = given.kind == CoordinateKind::scaled ? given : moved;
  Record record;
  QUERN_ASSIGN_OR_RETURN(Vector<std::uint8_t> header, own_header(cloud, record));
  const bool is_own = !header.empty();
  if (!is_own) {
    record = chosen_record(cloud);
    header = new_header(cloud, record);
  }
  if (cloud.points() > std::numeric_limits<std::uint32_t>::max() && header[kLasMinorAt] < 4)
    return Status(StatusCode::unsupported, "the points are more than this version of LAS counts");
  if (!is_own || !counts_points(cloud, header) || !is_in_box(cloud, header))
    update_header(cloud, record.format, header);
  if (is_own) drop_what_followed(header);
  CloudFile out;
  out.bytes = std::move(header);
  append_records(cloud, record, out);
  return out;
}

}  // namespace quern::lidar

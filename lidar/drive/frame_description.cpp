// The bytes of a frame's description, and names of frames.
#include "lidar/drive/frame_description.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/bits.h"
#include "lidar/history/stored_numbers.h"

namespace quern::lidar {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kPosedVersion = 2;
constexpr std::uint8_t kHistoryVersion = 3;
constexpr std::uint8_t kKnowingVersion = 4;
constexpr std::uint8_t kHasTime = 1;
constexpr std::uint8_t kHasPose = 2;
constexpr std::uint8_t kHasRays = 4;
constexpr std::uint8_t kHasReferences = 8;
constexpr std::uint8_t kHasEpoch = 16;
constexpr std::uint8_t kHasReach = 32;
constexpr std::uint8_t kHasKnown = 64;
constexpr std::size_t kMostColumns = 64;
constexpr std::size_t kMaxColumnNameBytes = 255;

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

/// Bytes of the well-formed UTF-8 character at the start, or 0.
std::size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return 1;
  const std::size_t bytes = lead >= 0xC2 && lead <= 0xDF   ? 2
                            : (lead & 0xF0) == 0xE0        ? 3
                            : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                           : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool longer = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool outside = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
  return longer || outside ? 0 : bytes;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  return first < 0x20 || first == 0x7F || (first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0);
}

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0 || is_control(text.substr(0, bytes))) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

void write_text(Writer& writer, const String& text) {
  writer.varint(text.size());
  writer.bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

Result<String> read_text(Reader& reader, std::size_t most) {
  QUERN_ASSIGN_OR_RETURN(const auto size, reader.varint(most));
  QUERN_ASSIGN_OR_RETURN(const auto bytes, reader.bytes(size));
  String text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_plain_text(text)) return corrupt("a name in the description of a frame is no plain text");
  return text;
}

bool has_grid(CodedKind kind) { return kind == CodedKind::scaled || kind == CodedKind::grid_of_f64; }

Status read_grid(Reader& reader, CoordinateGrid& grid) {
  for (double& scale : grid.scale) {
    QUERN_ASSIGN_OR_RETURN(scale, reader.f64());
    if (!std::isfinite(scale) || scale == 0) return corrupt("the scale of a frame's coordinates is no number");
  }
  for (double& offset : grid.offset) {
    QUERN_ASSIGN_OR_RETURN(offset, reader.f64());
    if (!std::isfinite(offset)) return corrupt("the offset of a frame's coordinates is no number");
  }
  return {};
}

Status read_columns(Reader& reader, FrameDescription& out) {
  QUERN_ASSIGN_OR_RETURN(const auto count, reader.varint(kMostColumns));
  for (std::uint64_t i = 0; i < count; ++i) {
    ColumnDescription column;
    QUERN_ASSIGN_OR_RETURN(column.name, read_text(reader, kMaxColumnNameBytes));
    QUERN_ASSIGN_OR_RETURN(const auto type, reader.u8());
    if (!is_known_dtype(type)) return corrupt("a column of a frame has no known type");
    column.type = static_cast<DType>(type);
    out.columns.push_back(std::move(column));
  }
  return {};
}

std::uint8_t flags_of(const FrameDescription& description) {
  return static_cast<std::uint8_t>(
      (description.time_stamp ? kHasTime : 0) | (description.pose ? kHasPose : 0) | (description.rays ? kHasRays : 0) |
      (description.references.empty() ? 0 : kHasReferences) | (description.epoch ? kHasEpoch : 0) |
      (description.reach ? kHasReach : 0) | (description.known ? kHasKnown : 0));
}

std::uint8_t version_of(std::uint8_t flags) {
  return flags >= kHasKnown   ? kKnowingVersion
         : flags >= kHasEpoch ? kHistoryVersion
         : flags > kHasTime   ? kPosedVersion
                              : kVersion;
}

/// What versions 2 to 4 add.
void write_prediction(const FrameDescription& description, Writer& writer) {
  if (description.pose) {
    for (const std::int64_t part : description.pose->quaternion) write_signed(writer, part);
    for (const std::int64_t at : description.pose->translation) write_signed(writer, at);
  }
  if (description.rays) {
    writer.u32(static_cast<std::uint32_t>(description.rays->step.x));
    writer.u32(static_cast<std::uint32_t>(description.rays->step.y));
    writer.varint(description.rays->rings.size());
    std::int64_t last = 0;
    for (const Ring& ring : description.rays->rings) {
      write_signed(writer, ring.slope - last);
      write_signed(writer, ring.height);
      last = ring.slope;
    }
  }
  if (description.epoch) write_hash(writer, *description.epoch);
  if (!description.is_predicted()) return;
  writer.varint(description.key_distance);
  if (description.reach) writer.varint(*description.reach);
  if (description.references.empty()) return;
  writer.varint(description.references.size());
  for (const std::uint64_t distance : description.references) writer.varint(distance);
}

Status read_pose(Reader& reader, FrameDescription& out) {
  Pose pose;
  for (std::int64_t& part : pose.quaternion) {
    QUERN_ASSIGN_OR_RETURN(part, read_signed(reader, Pose::kMostQuaternion));
  }
  for (std::int64_t& at : pose.translation) {
    QUERN_ASSIGN_OR_RETURN(at, read_signed(reader, Pose::kMostTranslation));
  }
  if (!is_pose(pose)) return corrupt("the pose of a frame is no rotation");
  out.pose = pose;
  return {};
}

Status read_rays(Reader& reader, FrameDescription& out) {
  SensorRays rays;
  QUERN_ASSIGN_OR_RETURN(rays.step.x, reader.u32());
  QUERN_ASSIGN_OR_RETURN(rays.step.y, reader.u32());
  QUERN_ASSIGN_OR_RETURN(const auto rings, reader.varint(SensorRays::kMostRings));
  std::int64_t last = 0;
  for (std::uint64_t i = 0; i < rings; ++i) {
    QUERN_ASSIGN_OR_RETURN(const auto step, read_signed(reader, 2 * SensorRays::kMostSlope));
    QUERN_ASSIGN_OR_RETURN(const auto height, read_signed(reader, SensorRays::kMostHeight));
    last += step;
    if (last < -SensorRays::kMostSlope || last > SensorRays::kMostSlope)
      return corrupt("a ring of a frame's sensor is too steep");
    rays.rings.push_back({static_cast<std::int32_t>(last), static_cast<std::int32_t>(height)});
  }
  if (!are_rays(rays)) return corrupt("the rays of a frame's sensor are not in order, or too many");
  out.rays = std::move(rays);
  return {};
}

Status read_references(Reader& reader, FrameDescription& out) {
  QUERN_ASSIGN_OR_RETURN(const auto count, reader.varint(kMostReferenceDistance));
  for (std::uint64_t i = 0; i < count; ++i) {
    QUERN_ASSIGN_OR_RETURN(const auto distance, reader.varint(std::min(out.key_distance, kMostReferenceDistance)));
    if (distance <= (out.references.empty() ? 0 : out.references.back()))
      return corrupt("a frame's references are not in order");
    out.references.push_back(distance);
  }
  return count == 0 ? corrupt("a frame is predicted without references") : Status();
}

Status read_prediction(Reader& reader, std::uint8_t flags, FrameDescription& out) {
  if ((flags & kHasPose) != 0) QUERN_RETURN_IF_ERROR(read_pose(reader, out));
  if ((flags & kHasRays) != 0) QUERN_RETURN_IF_ERROR(read_rays(reader, out));
  if ((flags & kHasEpoch) != 0) {
    QUERN_ASSIGN_OR_RETURN(out.epoch, read_hash(reader));
  }
  out.known = (flags & kHasKnown) != 0;
  if ((flags & (kHasReferences | kHasReach)) == 0)
    return out.known ? corrupt("a frame that is not predicted has known points") : Status();
  if (!out.pose) return corrupt("a frame is predicted without a pose");
  QUERN_ASSIGN_OR_RETURN(out.key_distance, reader.varint(kMostKeyDistance));
  if ((flags & kHasReach) != 0) {
    QUERN_ASSIGN_OR_RETURN(out.reach, reader.varint(kMostReach));
  }
  if ((flags & kHasReferences) != 0) QUERN_RETURN_IF_ERROR(read_references(reader, out));
  return {};
}

}  // namespace

bool is_frame_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxFrameNameBytes && name.front() != '.' && is_plain_text(name) &&
         name.find_first_of("/\\") == std::string_view::npos;
}

bool is_column_name(std::string_view name) { return name.size() <= kMaxColumnNameBytes && is_plain_text(name); }

String frame_name_of(std::string_view text) {
  String out;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const bool plain = bytes != 0 && !is_control(text.substr(0, bytes)) && text.front() != '/' &&
                       text.front() != '\\' && !(out.empty() && text.front() == '.');
    const std::size_t taken = std::max<std::size_t>(bytes, 1);
    if (out.size() + taken > kMaxFrameNameBytes) break;
    if (plain) {
      out.append(text.substr(0, taken));
    } else {
      out += '_';
    }
    text.remove_prefix(taken);
  }
  if (out.empty()) out = "frame";
  return out;
}

Vector<std::uint8_t> write_description(const FrameDescription& description) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  const std::uint8_t flags = flags_of(description);
  writer.u8(version_of(flags));
  writer.u8(flags);
  writer.u8(static_cast<std::uint8_t>(description.kind));
  writer.u8(static_cast<std::uint8_t>(description.format));
  write_text(writer, description.name);
  if (description.time_stamp) writer.u64(static_cast<std::uint64_t>(*description.time_stamp));
  writer.varint(description.source_bytes);
  writer.varint(description.rows);
  if (has_grid(description.kind)) {
    for (const double scale : description.grid.scale) writer.f64(scale);
    for (const double offset : description.grid.offset) writer.f64(offset);
  }
  writer.varint(description.columns.size());
  for (const ColumnDescription& column : description.columns) {
    write_text(writer, column.name);
    writer.u8(static_cast<std::uint8_t>(column.type));
  }
  writer.varint(description.file_header.size());
  writer.bytes(description.file_header);
  write_prediction(description, writer);
  return out;
}

Result<FrameDescription> read_description(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes);
  FrameDescription out;
  QUERN_ASSIGN_OR_RETURN(const auto version, reader.u8());
  if (version < kVersion || version > kKnowingVersion)
    return Status(StatusCode::unsupported_version, "the description of a frame has version {0}", version);
  QUERN_ASSIGN_OR_RETURN(const auto flags, reader.u8());
  if (flags >= 2 * kHasKnown || version != version_of(flags))
    return corrupt("the description of a frame has unknown flags");
  QUERN_ASSIGN_OR_RETURN(const auto kind, reader.u8());
  if (kind > static_cast<std::uint8_t>(CodedKind::projected))
    return corrupt("a frame has coordinates of an unknown kind");
  out.kind = static_cast<CodedKind>(kind);
  QUERN_ASSIGN_OR_RETURN(const auto format, reader.u8());
  if (format > static_cast<std::uint8_t>(kLastFileFormat)) return corrupt("a frame comes from an unknown file format");
  out.format = static_cast<FileFormat>(format);
  QUERN_ASSIGN_OR_RETURN(out.name, read_text(reader, kMaxFrameNameBytes));
  if (!is_frame_name(out.name)) return corrupt("the name of a frame could not be a file's");
  if ((flags & kHasTime) != 0) {
    QUERN_ASSIGN_OR_RETURN(const auto time, reader.u64());
    out.time_stamp = static_cast<std::int64_t>(time);
  }
  QUERN_ASSIGN_OR_RETURN(out.source_bytes, reader.varint(UINT64_C(1) << 62));
  QUERN_ASSIGN_OR_RETURN(out.rows, reader.varint(UINT64_C(1) << 32));
  if (has_grid(out.kind)) QUERN_RETURN_IF_ERROR(read_grid(reader, out.grid));
  QUERN_RETURN_IF_ERROR(read_columns(reader, out));
  QUERN_ASSIGN_OR_RETURN(const auto header_bytes, reader.varint(kMaxFileHeaderBytes));
  QUERN_ASSIGN_OR_RETURN(const auto header, reader.bytes(header_bytes));
  out.file_header.assign(header.begin(), header.end());
  QUERN_RETURN_IF_ERROR(read_prediction(reader, flags, out));
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  return out;
}

}  // namespace quern::lidar

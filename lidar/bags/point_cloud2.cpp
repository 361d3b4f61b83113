// PointCloud2: fields of points at offsets, points in rows, either byte order.
#include "lidar/bags/point_cloud2.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lidar/bags/cdr.h"
#include "lidar/bags/message_layout.h"
#include "lidar/drive/frame_description.h"
#include "lidar/files/raw_fields.h"

namespace quern::lidar {
namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::size_t kMostFields = 256;
/// By number of a PointField's type.
constexpr std::array<DType, 9> kTypes = {DType::u8,  DType::i8,  DType::u8,  DType::i16, DType::u16,
                                         DType::i32, DType::u32, DType::f32, DType::f64};

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

struct Field {
  String name;
  std::uint64_t offset = 0;
  DType type = DType::f32;
  std::uint64_t count = 1;
};

struct Message {
  std::int64_t stamp = 0;
  std::string_view frame_id;
  std::uint64_t height = 0;
  std::uint64_t width = 0;
  Vector<Field> fields;
  bool is_big_endian = false;
  std::uint64_t point_step = 0;
  std::uint64_t row_step = 0;
  std::span<const std::uint8_t> data;
  bool is_dense = false;

  std::uint64_t points() const { return height * width; }
};

Status read_fields(CdrReader& reader, Message& out) {
  const std::uint32_t count = reader.u32();
  if (count > kMostFields)
    return Status(StatusCode::corrupt, "the message has {0} fields a point", static_cast<std::int64_t>(count));
  for (std::uint32_t i = 0; i < count && !reader.is_short(); ++i) {
    Field field;
    field.name = reader.text();
    field.offset = reader.u32();
    const unsigned type = reader.u8();
    // Some drivers write a count of 0 for one element.
    field.count = std::max(reader.u32(), std::uint32_t{1});
    if (reader.is_short()) break;
    if (type == 0 || type >= kTypes.size())
      return Status(StatusCode::corrupt, "field {0} of the message has the unknown type {1}",
                    static_cast<std::int64_t>(i), static_cast<std::int64_t>(type));
    field.type = kTypes[type];
    if (!is_column_name(field.name))
      return Status(StatusCode::corrupt, "the name of field {0} of the message is no plain text",
                    static_cast<std::int64_t>(i));
    out.fields.push_back(std::move(field));
  }
  return {};
}

Result<Message> parse(std::span<const std::uint8_t> bytes) {
  QUERN_ASSIGN_OR_RETURN(CdrReader reader, CdrReader::open(bytes));
  Message out;
  const auto seconds = static_cast<std::int32_t>(reader.u32());
  out.stamp = seconds * kBillion + reader.u32();
  out.frame_id = reader.text();
  out.height = reader.u32();
  out.width = reader.u32();
  QUERN_RETURN_IF_ERROR(read_fields(reader, out));
  out.is_big_endian = reader.u8() != 0;
  out.point_step = reader.u32();
  out.row_step = reader.u32();
  out.data = reader.bytes();
  out.is_dense = reader.u8() != 0;
  if (reader.is_short()) return Status(StatusCode::truncated, "the message is shorter than its fields");
  if (out.frame_id.size() > kMaxTopicBytes)
    return corrupt("the name of the message's frame of coordinates is too long");
  return out;
}

/// Whether points, fields and data fit together.
Status check(const Message& message) {
  // Layouts of messages without points are stored, too.
  if (message.point_step > kMostPointStep)
    return Status(StatusCode::unsupported, "a point of the message has {0} bytes; {1} are read at most",
                  static_cast<std::int64_t>(message.point_step), static_cast<std::int64_t>(kMostPointStep));
  for (std::size_t i = 0; i < message.fields.size(); ++i) {
    const Field& field = message.fields[i];
    if (field.offset + field.count * dtype_bytes(field.type) > message.point_step)
      return Status(StatusCode::corrupt, "field {0} of the message does not fit into the {1} bytes of a point",
                    static_cast<std::int64_t>(i), static_cast<std::int64_t>(message.point_step));
  }
  if (message.points() == 0) return {};
  if (message.point_step == 0) return corrupt("the points of the message have no bytes");
  const std::uint64_t row = message.width * message.point_step;
  // Of one row some drivers leave the step of rows 0.
  if (message.height > 1 && message.row_step < row)
    return Status(StatusCode::corrupt, "a row of the message has {0} bytes, but its points need {1}",
                  static_cast<std::int64_t>(message.row_step), static_cast<std::int64_t>(row));
  const std::uint64_t rows_before = (message.height - 1) * (message.height > 1 ? message.row_step : 0);
  if (rows_before > message.data.size() || row > message.data.size() - rows_before)
    return Status(StatusCode::truncated, "the message has {0} bytes of points, fewer than its {1} points need",
                  static_cast<std::int64_t>(message.data.size()), static_cast<std::int64_t>(message.points()));
  return {};
}

/// Fields of one element each, and where they were.
struct Elements {
  Vector<RawField> fields;
  Vector<FieldPlace> places;
};

Result<Elements> elements_of(const Message& message) {
  Elements out;
  std::array<bool, 3> found{};
  std::uint64_t columns = 0;
  static constexpr std::array<std::string_view, 3> kAxes = {"x", "y", "z"};
  for (const Field& field : message.fields) {
    if (field.count > kMostMessageFields || out.fields.size() + field.count > kMostMessageFields)
      return Status(StatusCode::unsupported, "the points of the message have more than {0} elements",
                    static_cast<std::int64_t>(kMostMessageFields));
    const auto axis = static_cast<std::size_t>(std::find(kAxes.begin(), kAxes.end(), field.name) - kAxes.begin());
    const bool is_axis = field.count == 1 && axis < 3 && !found[axis];
    out.places.push_back({is_axis ? axis : 3 + columns, field.offset, field.count});
    if (is_axis) {
      found[axis] = true;
    } else {
      columns += field.count;
    }
    for (std::uint64_t e = 0; e < field.count; ++e) {
      RawField element{field.name, field.type, field.offset + e * dtype_bytes(field.type)};
      if (field.count > 1) element.name.append("_").append(std::to_string(e));
      if (!is_column_name(element.name))
        return Status(StatusCode::unsupported,
                      "a field of {0} elements has a name of {1} bytes, too long to number them",
                      static_cast<std::int64_t>(field.count), static_cast<std::int64_t>(field.name.size()));
      out.fields.push_back(std::move(element));
    }
  }
  return out;
}

/// Points without what pads rows, little-endian.
Vector<std::uint8_t> plain_rows(const Message& message, std::span<const RawField> fields) {
  Vector<std::uint8_t> out;
  const std::uint64_t row = message.width * message.point_step;
  out.reserve(static_cast<std::size_t>(message.height * row));
  for (std::uint64_t r = 0; r < message.height; ++r) {
    const std::uint8_t* const begin = message.data.data() + r * message.row_step;
    out.insert(out.end(), begin, begin + row);
  }
  if (!message.is_big_endian) return out;
  // Fields may overlap: each is turned from the message's bytes.
  for (std::uint64_t p = 0; p < message.points(); ++p) {
    const std::uint8_t* const from =
        message.data.data() + p / message.width * message.row_step + p % message.width * message.point_step;
    std::uint8_t* const to = out.data() + p * message.point_step;
    for (const RawField& field : fields)
      std::reverse_copy(from + field.offset, from + field.offset + dtype_bytes(field.type), to + field.offset);
  }
  return out;
}

bool overlap(std::span<const RawField> fields) {
  for (std::size_t a = 0; a < fields.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (fields[a].offset < fields[b].offset + dtype_bytes(fields[b].type) &&
          fields[b].offset < fields[a].offset + dtype_bytes(fields[a].type))
        return true;
  return false;
}

}  // namespace

Result<MessageCloud> read_point_cloud2(std::span<const std::uint8_t> bytes, std::string_view topic,
                                       std::int64_t log_time) {
  QUERN_ASSIGN_OR_RETURN(const Message message, parse(bytes));
  QUERN_RETURN_IF_ERROR(check(message));
  QUERN_ASSIGN_OR_RETURN(Elements elements, elements_of(message));
  if (message.is_big_endian && overlap(elements.fields))
    return Status(StatusCode::unsupported, "fields of the big-endian message overlap");
  const bool is_plain = message.height <= 1 && !message.is_big_endian;
  const Vector<std::uint8_t> rows =
      is_plain || message.points() == 0 ? Vector<std::uint8_t>() : plain_rows(message, elements.fields);
  MessageCloud out;
  // What has no points may have no fields.
  if (!message.fields.empty() || message.points() != 0) {
    QUERN_ASSIGN_OR_RETURN(out.cloud,
                           cloud_of_rows(elements.fields, is_plain ? message.data : std::span<const std::uint8_t>(rows),
                                         message.points(), message.point_step));
  }
  out.stamp = message.stamp;
  out.cloud.format = FileFormat::point_cloud2;
  out.cloud.source_bytes = bytes.size();
  out.cloud.rows = message.height > 1 && message.width > 0 ? message.height : 0;
  MessageLayout layout;
  layout.topic = topic.substr(0, kMaxTopicBytes);
  layout.frame_id = message.frame_id;
  if (__builtin_sub_overflow(log_time, message.stamp, &layout.log_delay)) layout.log_delay = 0;
  layout.is_dense = message.is_dense;
  layout.point_step = message.point_step;
  layout.places = std::move(elements.places);
  out.cloud.file_header = write_layout(layout);
  return out;
}

void drop_attributes(PointCloud& cloud) {
  cloud.columns.clear();
  const auto layout = read_layout(cloud.file_header);
  cloud.file_header.clear();
  if (cloud.format != FileFormat::point_cloud2) return;
  if (!layout.ok()) {
    cloud.format = FileFormat::unknown;
    return;
  }
  MessageLayout kept = *layout;
  kept.point_step = 0;
  kept.places.clear();
  cloud.file_header = write_layout(kept);
}

namespace {

/// The number of a PointField's type; 0: there is none.
std::uint8_t type_number(DType type) {
  for (std::size_t i = 1; i < kTypes.size(); ++i)
    if (kTypes[i] == type) return static_cast<std::uint8_t>(i);
  return 0;
}

/// A field of the message that is written: which elements of a row of append_rows() it takes.
struct OutField {
  RawField first;  ///< its place in a row
  std::uint64_t offset = 0;
  std::uint64_t count = 1;
  String name;
};

/// All of them one behind the other, but for those without a type.
Vector<OutField> packed_fields(std::span<const RawField> elements, std::uint64_t& step, Vector<String>& left_out) {
  Vector<OutField> out;
  step = 0;
  for (const RawField& element : elements) {
    if (type_number(element.type) == 0) {
      left_out.push_back(element.name);
      continue;
    }
    out.push_back({element, step, 1, element.name});
    step += dtype_bytes(element.type);
  }
  return out;
}

Result<Vector<OutField>> placed_fields(std::span<const RawField> elements, const MessageLayout& layout) {
  Vector<OutField> out;
  for (const FieldPlace& place : layout.places) {
    const bool fits = place.count != 0 && place.element + place.count <= elements.size();
    if (!fits || type_number(elements[static_cast<std::size_t>(place.element)].type) == 0)
      return corrupt("the layout of the message has fields that the frame has not");
    OutField field{elements[static_cast<std::size_t>(place.element)], place.offset, place.count, {}};
    field.name = field.first.name;
    if (place.count > 1 && field.name.ends_with("_0")) field.name.resize(field.name.size() - 2);
    for (std::uint64_t e = 1; e < place.count; ++e)
      if (elements[static_cast<std::size_t>(place.element + e)].type != field.first.type)
        return corrupt("the layout of the message has a field of several types");
    if (place.offset + place.count * dtype_bytes(field.first.type) > layout.point_step)
      return corrupt("a field of the message's layout does not fit into its points");
    out.push_back(std::move(field));
  }
  return out;
}

void write_message(const PointCloud& cloud, const MessageLayout& layout, std::span<const OutField> fields,
                   std::uint64_t step, std::int64_t stamp, std::uint64_t row_bytes, Vector<std::uint8_t>& out) {
  const std::uint64_t points = cloud.points();
  const std::uint64_t height = cloud.rows != 0 && points % cloud.rows == 0 ? cloud.rows : 1;
  CdrWriter writer(out);
  const std::int64_t seconds = stamp / kBillion - (stamp % kBillion < 0 ? 1 : 0);
  writer.u32(static_cast<std::uint32_t>(static_cast<std::int32_t>(seconds)));
  writer.u32(static_cast<std::uint32_t>(stamp - seconds * kBillion));
  writer.text(layout.frame_id);
  writer.u32(static_cast<std::uint32_t>(height));
  writer.u32(static_cast<std::uint32_t>(points / height));
  writer.u32(static_cast<std::uint32_t>(fields.size()));
  for (const OutField& field : fields) {
    writer.text(field.name);
    writer.u32(static_cast<std::uint32_t>(field.offset));
    writer.u8(type_number(field.first.type));
    writer.u32(static_cast<std::uint32_t>(field.count));
  }
  writer.u8(0);
  writer.u32(static_cast<std::uint32_t>(step));
  writer.u32(static_cast<std::uint32_t>(points / height * step));
  writer.u32(static_cast<std::uint32_t>(points * step));
  const std::size_t begin = out.size();
  out.resize(begin + static_cast<std::size_t>(points * step));
  Vector<std::uint8_t> rows;
  append_rows(cloud, rows);
  for (std::uint64_t p = 0; p < points; ++p)
    for (const OutField& field : fields)
      std::copy_n(rows.data() + p * row_bytes + field.first.offset, field.count * dtype_bytes(field.first.type),
                  out.data() + begin + p * step + field.offset);
  writer.u8(layout.is_dense ? 1 : 0);
}

bool all_finite(const PointCloud& cloud) {
  for (std::uint64_t i = 0; i < cloud.points(); ++i)
    if (!cloud.is_finite(i)) return false;
  return true;
}

}  // namespace

Result<WrittenMessage> write_point_cloud2(const PointCloud& cloud, std::int64_t stamp, std::string_view topic,
                                          std::uint64_t most_bytes) {
  WrittenMessage out;
  if (stamp / kBillion < INT32_MIN || stamp / kBillion > INT32_MAX)
    return Status(StatusCode::unsupported, "the time of the frame is beyond what a message holds (the year 2038)");
  const auto elements = fields_of(cloud);
  MessageLayout layout;
  Vector<OutField> fields;
  if (cloud.format == FileFormat::point_cloud2) {
    QUERN_ASSIGN_OR_RETURN(layout, read_layout(cloud.file_header));
  } else {
    layout.topic = topic;
    layout.frame_id = "lidar";
    layout.is_dense = all_finite(cloud);
  }
  if (layout.places.empty()) {
    fields = packed_fields(elements, layout.point_step, out.left_out);
  } else {
    QUERN_ASSIGN_OR_RETURN(fields, placed_fields(elements, layout));
  }
  if (layout.point_step != 0 && cloud.points() > UINT32_MAX / layout.point_step)
    return Status(StatusCode::unsupported, "the points of the frame take 4 GiB or more, above what a message holds");
  // A stored layout may ask for far more bytes a point than the frame has.
  if (layout.point_step != 0 && cloud.points() > most_bytes / layout.point_step)
    return Status(StatusCode::memory_limit, "the message of the frame has {0} bytes a point, which need more than {1}",
                  static_cast<std::int64_t>(layout.point_step), static_cast<std::int64_t>(most_bytes));
  const std::uint64_t row_bytes = elements.back().offset + dtype_bytes(elements.back().type);
  write_message(cloud, layout, fields, layout.point_step, stamp, row_bytes, out.bytes);
  out.topic = layout.topic;
  // Stamps are within 2^61, delays within 2^62.
  out.log_time = std::max<std::int64_t>(stamp + layout.log_delay, 0);
  return out;
}

}  // namespace quern::lidar

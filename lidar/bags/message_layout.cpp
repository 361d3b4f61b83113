// Layouts of messages as bytes.
#include "lidar/bags/message_layout.h"

#include "lidar/history/stored_numbers.h"

namespace quern::lidar {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kDense = 1;
constexpr std::int64_t kMostDelay = INT64_C(1) << 62;

void write_text(Writer& writer, const String& text) {
  writer.varint(text.size());
  writer.bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

Result<String> read_text(Reader& reader) {
  QUERN_ASSIGN_OR_RETURN(const auto size, reader.varint(kMaxTopicBytes));
  QUERN_ASSIGN_OR_RETURN(const auto bytes, reader.bytes(size));
  return String(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

Vector<std::uint8_t> write_layout(const MessageLayout& layout) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.u8(kVersion);
  writer.u8(layout.is_dense ? kDense : 0);
  write_text(writer, layout.topic);
  write_text(writer, layout.frame_id);
  write_signed(writer, layout.log_delay < -kMostDelay || layout.log_delay > kMostDelay ? 0 : layout.log_delay);
  writer.varint(layout.point_step);
  writer.varint(layout.places.size());
  for (const FieldPlace& place : layout.places) {
    writer.varint(place.element);
    writer.varint(place.offset);
    writer.varint(place.count);
  }
  return out;
}

Result<MessageLayout> read_layout(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes);
  MessageLayout out;
  QUERN_ASSIGN_OR_RETURN(const auto version, reader.u8());
  QUERN_ASSIGN_OR_RETURN(const auto flags, reader.u8());
  if (version != kVersion || flags > kDense)
    return Status(StatusCode::corrupt, "the layout of a message has an unknown version or flags");
  out.is_dense = (flags & kDense) != 0;
  QUERN_ASSIGN_OR_RETURN(out.topic, read_text(reader));
  QUERN_ASSIGN_OR_RETURN(out.frame_id, read_text(reader));
  QUERN_ASSIGN_OR_RETURN(out.log_delay, read_signed(reader, kMostDelay));
  QUERN_ASSIGN_OR_RETURN(out.point_step, reader.varint(kMostPointStep));
  QUERN_ASSIGN_OR_RETURN(const auto fields, reader.varint(kMostMessageFields));
  for (std::uint64_t i = 0; i < fields; ++i) {
    FieldPlace place;
    QUERN_ASSIGN_OR_RETURN(place.element, reader.varint(kMostMessageFields));
    QUERN_ASSIGN_OR_RETURN(place.offset, reader.varint(kMostPointStep));
    QUERN_ASSIGN_OR_RETURN(place.count, reader.varint(kMostMessageFields));
    out.places.push_back(place);
  }
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  return out;
}

}  // namespace quern::lidar

// MCAP files of one kind of message.
#include "lidar/bags/mcap_writer.h"

#include <algorithm>

#include <zstd.h>

#include "libcompress/format/zstd_frame.h"
#include "lidar/bags/bag.h"
#include "lidar/bags/expand.h"
#include "lidar/bags/mcap_format.h"

namespace quern::lidar {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr int kLevel = 1;
constexpr std::uint16_t kSchema = 1;

/// The definition of PointCloud2 and of what it is made of, as ROS 2 has it, without comments.
constexpr std::string_view kDefinition =
    "std_msgs/Header header\n"
    "uint32 height\n"
    "uint32 width\n"
    "PointField[] fields\n"
    "bool is_bigendian\n"
    "uint32 point_step\n"
    "uint32 row_step\n"
    "uint8[] data\n"
    "bool is_dense\n"
    "================================================================================\n"
    "MSG: sensor_msgs/PointField\n"
    "uint8 INT8=1\n"
    "uint8 UINT8=2\n"
    "uint8 INT16=3\n"
    "uint8 UINT16=4\n"
    "uint8 INT32=5\n"
    "uint8 UINT32=6\n"
    "uint8 FLOAT32=7\n"
    "uint8 FLOAT64=8\n"
    "string name\n"
    "uint32 offset\n"
    "uint8 datatype\n"
    "uint32 count\n"
    "================================================================================\n"
    "MSG: std_msgs/Header\n"
    "builtin_interfaces/Time stamp\n"
    "string frame_id\n"
    "================================================================================\n"
    "MSG: builtin_interfaces/Time\n"
    "int32 sec\n"
    "uint32 nanosec\n";

/// Appends a record whose content `fill` writes.
template <class Fill>
void append_record(std::uint8_t opcode, const Fill& fill, Vector<std::uint8_t>& out) {
  out.push_back(opcode);
  const std::size_t length_at = out.size();
  Writer writer(out);
  writer.u64(0);
  fill(writer);
  Vector<std::uint8_t> length;
  Writer(length).u64(out.size() - length_at - 8);
  std::copy(length.begin(), length.end(), out.begin() + static_cast<std::ptrdiff_t>(length_at));
}

void append_schema(Vector<std::uint8_t>& out) {
  append_record(
      mcap::kSchema,
      [](Writer& writer) {
        writer.u16(kSchema);
        mcap::write_text(writer, kPointCloud2);
        mcap::write_text(writer, "ros2msg");
        mcap::write_text(writer, kDefinition);
      },
      out);
}

}  // namespace

Status McapWriter::put(std::span<const std::uint8_t> bytes) {
  at_ += bytes.size();
  return sink_.write(bytes);
}

Status McapWriter::begin() {
  Vector<std::uint8_t> out(mcap::kMagic.begin(), mcap::kMagic.end());
  append_record(
      mcap::kHeader,
      [](Writer& writer) {
        mcap::write_text(writer, "ros2");
        mcap::write_text(writer, "quern");
      },
      out);
  append_schema(records_);
  return put(out);
}

void McapWriter::append_channel(std::uint16_t number, Vector<std::uint8_t>& out) const {
  append_record(
      mcap::kChannel,
      [&](Writer& writer) {
        writer.u16(number);
        writer.u16(kSchema);
        mcap::write_text(writer, channels_[number].topic);
        mcap::write_text(writer, "cdr");
        writer.u32(0);
      },
      out);
}

Result<std::uint16_t> McapWriter::channel_of(const String& topic) {
  for (std::size_t i = 0; i < channels_.size(); ++i)
    if (channels_[i].topic == topic) return static_cast<std::uint16_t>(i);
  if (channels_.size() > UINT16_MAX)
    return Status(StatusCode::unsupported, "the frames are of more topics than an MCAP file has room for");
  channels_.push_back({topic, 0, {}});
  const auto number = static_cast<std::uint16_t>(channels_.size() - 1);
  append_channel(number, records_);
  return number;
}

Status McapWriter::add(const WrittenMessage& message) {
  if (at_ == 0) QUERN_RETURN_IF_ERROR(begin());
  QUERN_ASSIGN_OR_RETURN(const auto number, channel_of(message.topic));
  Channel& channel = channels_[number];
  const auto time = static_cast<std::uint64_t>(message.log_time);
  channel.entries.push_back({time, records_.size()});
  append_record(
      mcap::kMessage,
      [&](Writer& writer) {
        writer.u16(number);
        writer.u32(static_cast<std::uint32_t>(channel.messages));
        writer.u64(time);
        writer.u64(time);
        writer.bytes(message.bytes);
      },
      records_);
  ++channel.messages;
  first_time_ = std::min(first_time_, time);
  last_time_ = std::max(last_time_, time);
  return records_.size() >= kChunkBytes ? write_chunk() : Status();
}

Status McapWriter::write_chunk() {
  if (records_.empty()) return {};
  Vector<std::uint8_t> packed(ZSTD_compressBound(records_.size()));
  QUERN_ASSIGN_OR_RETURN(const std::size_t packed_bytes, zstd_pack(records_, kLevel, packed));
  ChunkIndex index;
  index.first_time = UINT64_MAX;
  for (const Channel& channel : channels_)
    for (const Entry& entry : channel.entries) {
      index.first_time = std::min(index.first_time, entry.log_time);
      index.last_time = std::max(index.last_time, entry.log_time);
    }
  index.first_time = std::min(index.first_time, index.last_time);  // without messages both are 0
  Vector<std::uint8_t> out;
  append_record(
      mcap::kChunk,
      [&](Writer& writer) {
        writer.u64(index.first_time);
        writer.u64(index.last_time);
        writer.u64(records_.size());
        writer.u32(crc32_of(records_));
        mcap::write_text(writer, "zstd");
        writer.u64(packed_bytes);
        writer.bytes(std::span(packed).first(packed_bytes));
      },
      out);
  index.at = at_;
  index.bytes = out.size();
  index.packed_bytes = packed_bytes;
  index.unpacked_bytes = records_.size();
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = channels_[i];
    if (channel.entries.empty()) continue;
    const auto number = static_cast<std::uint16_t>(i);
    index.index_at.emplace_back(number, at_ + out.size());
    append_record(
        mcap::kMessageIndex,
        [&](Writer& writer) {
          writer.u16(number);
          writer.u32(static_cast<std::uint32_t>(16 * channel.entries.size()));
          for (const Entry& entry : channel.entries) {
            writer.u64(entry.log_time);
            writer.u64(entry.offset);
          }
        },
        out);
    channel.entries.clear();
  }
  index.index_bytes = out.size() - index.bytes;
  chunks_.push_back(std::move(index));
  records_.clear();
  return put(out);
}

Status McapWriter::finish() {
  if (at_ == 0) QUERN_RETURN_IF_ERROR(begin());
  QUERN_RETURN_IF_ERROR(write_chunk());
  Vector<std::uint8_t> out;
  append_record(
      mcap::kDataEnd, [](Writer& writer) { writer.u32(0); }, out);
  const std::uint64_t summary_at = at_ + out.size();
  struct Group {
    std::uint8_t opcode;
    std::uint64_t at;
    std::uint64_t bytes;
  };
  Vector<Group> groups;
  const auto add_group = [&](std::uint8_t opcode, const auto& fill) {
    const std::uint64_t at = at_ + out.size();
    fill();
    if (at_ + out.size() > at) groups.push_back({opcode, at, at_ + out.size() - at});
  };
  add_group(mcap::kSchema, [&] { append_schema(out); });
  add_group(mcap::kChannel, [&] {
    for (std::size_t i = 0; i < channels_.size(); ++i) append_channel(static_cast<std::uint16_t>(i), out);
  });
  add_group(mcap::kStatistics, [&] {
    append_record(
        mcap::kStatistics,
        [&](Writer& writer) {
          std::uint64_t messages = 0;
          for (const Channel& channel : channels_) messages += channel.messages;
          writer.u64(messages);
          writer.u16(1);
          writer.u32(static_cast<std::uint32_t>(channels_.size()));
          writer.u32(0);
          writer.u32(0);
          writer.u32(static_cast<std::uint32_t>(chunks_.size()));
          writer.u64(messages == 0 ? 0 : first_time_);
          writer.u64(last_time_);
          writer.u32(static_cast<std::uint32_t>(10 * channels_.size()));
          for (std::size_t i = 0; i < channels_.size(); ++i) {
            writer.u16(static_cast<std::uint16_t>(i));
            writer.u64(channels_[i].messages);
          }
        },
        out);
  });
  add_group(mcap::kChunkIndex, [&] {
    for (const ChunkIndex& chunk : chunks_)
      append_record(
          mcap::kChunkIndex,
          [&](Writer& writer) {
            writer.u64(chunk.first_time);
            writer.u64(chunk.last_time);
            writer.u64(chunk.at);
            writer.u64(chunk.bytes);
            writer.u32(static_cast<std::uint32_t>(10 * chunk.index_at.size()));
            for (const auto& [number, at] : chunk.index_at) {
              writer.u16(number);
              writer.u64(at);
            }
            writer.u64(chunk.index_bytes);
            mcap::write_text(writer, "zstd");
            writer.u64(chunk.packed_bytes);
            writer.u64(chunk.unpacked_bytes);
          },
          out);
  });
  const std::uint64_t offsets_at = at_ + out.size();
  for (const Group& group : groups)
    append_record(
        mcap::kSummaryOffset,
        [&](Writer& writer) {
          writer.u8(group.opcode);
          writer.u64(group.at);
          writer.u64(group.bytes);
        },
        out);
  append_record(
      mcap::kFooter,
      [&](Writer& writer) {
        writer.u64(summary_at);
        writer.u64(offsets_at);
        writer.u32(0);
      },
      out);
  out.insert(out.end(), mcap::kMagic.begin(), mcap::kMagic.end());
  return put(out);
}

}  // namespace quern::lidar

// Writes PointCloud2 messages as an MCAP file: chunks packed by zstd, an index at the end.
#pragma once

#include <cstdint>
#include <string_view>

#include <quern/stream_io.h>

#include "lidar/bags/point_cloud2.h"

namespace quern::lidar {

/// One thread at a time. The bytes depend on the messages alone.
class McapWriter {
 public:
  /// The sink outlives the writer.
  explicit McapWriter(ByteSink& sink) : sink_(sink) {}

  /// Takes a message; a chunk is written when it is full. Memory: two chunks of the larger of 1 MiB and a message.
  Status add(const WrittenMessage& message);
  /// Writes the last chunk and the index. The writer is done then.
  Status finish();
  /// Of the file so far.
  std::uint64_t bytes() const { return at_; }

 private:
  struct Entry {
    std::uint64_t log_time = 0;
    std::uint64_t offset = 0;
  };
  struct Channel {
    String topic;
    std::uint64_t messages = 0;
    Vector<Entry> entries;  ///< of the chunk that is being filled
  };
  struct ChunkIndex {
    std::uint64_t first_time = 0, last_time = 0;
    std::uint64_t at = 0, bytes = 0, index_bytes = 0, packed_bytes = 0, unpacked_bytes = 0;
    Vector<std::pair<std::uint16_t, std::uint64_t>> index_at;  ///< by channel
  };

  Status put(std::span<const std::uint8_t> bytes);
  Status begin();
  Status write_chunk();
  Result<std::uint16_t> channel_of(const String& topic);
  void append_channel(std::uint16_t number, Vector<std::uint8_t>& out) const;

  ByteSink& sink_;
  std::uint64_t at_ = 0;
  Vector<std::uint8_t> records_;  ///< of the chunk that is being filled
  std::uint64_t first_time_ = UINT64_MAX, last_time_ = 0;
  Vector<Channel> channels_;
  Vector<ChunkIndex> chunks_;
};

}  // namespace quern::lidar

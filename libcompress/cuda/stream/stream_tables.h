// What the kernels of a stream know of its segments and chunks, in device memory: one SegmentRecord for each segment,
// one ChunkRecord for each chunk. Plain data; host code prepares it, kernels fill it in.
#pragma once

#include <cstdint>

#include <quern/status.h>

#include "libcompress/device/device_stream.h"
#include "libcompress/format/grid/segment.h"

namespace quern::cuda {

struct SegmentRecord {
  std::uint64_t offset = 0;  ///< in the stream's bytes
  std::uint64_t bytes = 0;   ///< all of it
  std::uint64_t index_offset = 0;
  std::uint64_t slot = 0;  ///< of its first chunk; the others follow
  const std::uint8_t* mask = nullptr;
  std::uint32_t mask_bytes = 0;
  StatusCode status = StatusCode::ok;
};

struct ChunkRecord {
  std::uint32_t offset = 0;  ///< from the segment's start
  std::uint32_t stored = 0;  ///< bytes
  std::uint16_t check = 0;
  ChunkForm form = ChunkForm::coded;
  bool all_masked = false;  ///< every cell is in the mask
};

/// The tables of a queue of kernels. Stream i has segments [i * segments, ...) and its segment s has chunks
/// [(i * segments + s) * chunks, ...); places beyond what a stream has stay unused. Slots have no gaps: chunk c of
/// stream i, counted from its first segment's first, has slot i * slots + c.
struct StreamTables {
  DeviceStream* streams = nullptr;
  SegmentRecord* segment_records = nullptr;
  ChunkRecord* chunk_records = nullptr;
  std::uint32_t count = 0;     ///< streams
  std::uint32_t segments = 0;  ///< of a stream, at most
  std::uint32_t chunks = 0;    ///< of a segment, at most
  std::uint32_t slots = 0;     ///< chunks of a stream, at most
  std::uint32_t coded = 0;     ///< the same, where a codec was used
};

}  // namespace quern::cuda

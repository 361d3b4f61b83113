// The tables and slots of a queue of kernels as parts of a workspace.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/chunk.h"
#include "libcompress/cuda/stream/stream_tables.h"
#include "libcompress/device/workspace.h"

namespace quern::cuda {

/// How many streams, segments of each and chunks of each segment there may be.
struct TableShape {
  std::uint32_t streams = 1;
  std::uint32_t segments = 0;
  std::uint32_t chunks = 0;
  std::uint32_t slots = 0;  ///< chunks of a stream
  std::uint32_t coded = 0;  ///< of these, at most, in streams that a codec writes

  std::uint64_t slot_places() const { return std::uint64_t{streams} * slots; }
  std::uint64_t segment_places() const { return std::uint64_t{streams} * segments; }
  std::uint64_t chunk_places() const { return segment_places() * chunks; }
};

/// Launches have a CTA for each place.
inline constexpr std::uint64_t kMaxChunkPlaces = 0x7fffffff;

struct SegmentTables {
  TableShape shape;
  Part<DeviceStream> streams;
  Part<SegmentRecord> segments;
  Part<ChunkRecord> chunks;
  Part<kernels::CudaChunk> boxes;

  SegmentTables() = default;
  SegmentTables(const TableShape& table_shape, Workspace& workspace)
      : shape(table_shape),
        streams(workspace.add<DeviceStream>(shape.streams)),
        segments(workspace.add<SegmentRecord>(shape.segment_places())),
        chunks(workspace.add<ChunkRecord>(shape.chunk_places())),
        boxes(workspace.add<kernels::CudaChunk>(shape.slot_places())) {}

  StreamTables bind(std::uint8_t* memory) const {
    return {streams.at(memory), segments.at(memory), chunks.at(memory), shape.streams,
            shape.segments,     shape.chunks,        shape.slots,       shape.coded};
  }
};

}  // namespace quern::cuda

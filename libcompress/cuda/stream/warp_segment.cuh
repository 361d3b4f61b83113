// A warp and the segment it works on.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/block_hash.cuh"
#include "kernels/common/cuda/warp_hash.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "libcompress/cuda/stream/stream_tables.h"

namespace quern::cuda {

/// Warps of a CTA whose warps work on segments of their own.
inline constexpr unsigned kSegmentWarps = 4;
static_assert(kMaxSegmentChunks == 2 * kernels::kLanes, "a lane has two chunks of a segment");

inline unsigned segment_blocks(const StreamTables& tables) {
  return static_cast<unsigned>((std::uint64_t{tables.count} * tables.segments + kSegmentWarps - 1) / kSegmentWarps);
}

struct WarpSegment {
  DeviceStream* stream = nullptr;  ///< null: there is no such segment
  SegmentRecord* record = nullptr;
  ChunkRecord* chunks = nullptr;
  std::uint64_t first_place = 0;  ///< of its chunks
  std::uint64_t number = 0;       ///< within the stream
};

/// The segment at place `at` of the tables.
__device__ __forceinline__ WarpSegment segment_at(const StreamTables& tables, std::uint64_t at) {
  WarpSegment s;
  const std::uint64_t stream = at / tables.segments;
  const std::uint64_t local = at % tables.segments;
  if (stream >= tables.count || local >= tables.streams[stream].segments) return s;
  s.stream = tables.streams + stream;
  s.record = tables.segment_records + at;
  s.first_place = at * tables.chunks;
  s.chunks = tables.chunk_records + s.first_place;
  s.number = s.stream->first_segment + local;
  return s;
}

/// Chunks of a stream's segments; none of one that has failed.
__device__ __forceinline__ std::uint64_t chunks_of(const DeviceStream& stream) {
  if (stream.status != StatusCode::ok || stream.segments == 0) return 0;
  const std::uint64_t last = stream.first_segment + stream.segments - 1;
  return stream.layout.first_chunk(last) + stream.layout.segment_chunks(last) -
         stream.layout.first_chunk(stream.first_segment);
}

/// Slot of a segment's first chunk; the others follow.
__device__ __forceinline__ std::uint64_t first_slot(const StreamTables& tables, const WarpSegment& s) {
  const auto stream = static_cast<std::uint64_t>(s.stream - tables.streams);
  const SegmentLayout& layout = s.stream->layout;
  return stream * tables.slots + layout.first_chunk(s.number) - layout.first_chunk(s.stream->first_segment);
}

__device__ __forceinline__ WarpSegment segment_of_warp(const StreamTables& tables) {
  return segment_at(tables, std::uint64_t{blockIdx.x} * kSegmentWarps + threadIdx.x / kernels::kLanes);
}

/// Places of segments that a stream has in the tables; one, for what is done once, where there are none.
__host__ __device__ inline std::uint32_t places_of_stream(const StreamTables& tables) {
  return tables.segments != 0 ? tables.segments : 1;
}

/// What the checksum of a segment's first bytes is made of, bound to its stream and place.
__device__ __forceinline__ kernels::LaneHashInput checksum_input(const WarpSegment& s, const std::uint8_t* bytes,
                                                                 std::uint64_t size) {
  return {bytes, size, s.stream->header_checksum, s.number, true};
}
/// That checksum by a warp, for what is short. The same in all lanes.
__device__ __forceinline__ std::uint64_t bound_checksum(const WarpSegment& s, const std::uint8_t* bytes,
                                                        std::uint64_t size) {
  return kernels::warp_xxh3(checksum_input(s, bytes, size));
}

/// Warps of a CTA that hashes a segment.
inline constexpr unsigned kSegmentHashWarps = 16;
using SegmentHashShared = kernels::CtaHashShared<kSegmentHashWarps>;

}  // namespace quern::cuda

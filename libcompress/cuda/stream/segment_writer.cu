// Settling, placing, writing and sealing segments.
#include "libcompress/cuda/stream/segment_writer.cuh"

#include "kernels/common/cuda/copy_bytes.cuh"
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/unroll.h"
#include "libcompress/cuda/stream/outcome.cuh"
#include "libcompress/cuda/stream/warp_segment.cuh"
#include "libcompress/device/arrival.cuh"
#include "libcompress/format/grid/segment_frame.h"

namespace quern::cuda {
namespace {

using kernels::kLanes;
using kernels::WarpLanes;

/// Segments that a lane places at once.
constexpr unsigned kPlacedAtOnce = 4;
constexpr unsigned kCopyThreads = 128;
constexpr unsigned kSealWarps = kSegmentHashWarps;
constexpr unsigned kChunksOfWarp = kMaxSegmentChunks / kSealWarps;

__device__ __forceinline__ std::uint64_t raw_chunk_bytes(const SegmentLayout& layout, std::uint64_t segment,
                                                         std::uint64_t k) {
  return layout.chunk_box(segment, k).elems() * dtype_bytes(layout.dtype());
}

/// Called by a warp: forms, stored bytes, and offsets within the segment.
__device__ __forceinline__ void settle_segment(const StreamTables& tables, const WarpSegment& s,
                                               const std::uint32_t* coded) {
  const SegmentLayout& layout = s.stream->layout;
  const std::uint64_t count = layout.segment_chunks(s.number);
  const unsigned lane = WarpLanes::lane();
  const std::uint32_t* const sizes = coded + first_slot(tables, s);
  std::uint32_t raw[2] = {0, 0};
  std::uint32_t stored[2] = {0, 0};
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned k = half * kLanes + lane;
    if (k >= count) continue;
    ChunkRecord& chunk = s.chunks[k];
    raw[half] = static_cast<std::uint32_t>(raw_chunk_bytes(layout, s.number, k));
    const std::uint32_t bytes = chunk.all_masked ? 0 : sizes[k] & ~kernels::kChunkInParts;
    chunk.form = chunk.all_masked ? ChunkForm::masked : bytes < raw[half] ? ChunkForm::coded : ChunkForm::raw;
    stored[half] = bytes < raw[half] ? bytes : raw[half];
  }
  std::uint32_t mask_bytes = s.record->mask_bytes;
  const std::uint32_t all_raw = WarpLanes::reduce_add(raw[0] + raw[1]);
  if (mask_bytes + std::uint64_t{WarpLanes::reduce_add(stored[0] + stored[1])} > all_raw) {
    // The mask does not pay: raw chunks hold special values as they are.
    mask_bytes = 0;
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned k = half * kLanes + lane;
      stored[half] = raw[half];
      if (k < count) s.chunks[k].form = ChunkForm::raw;
    }
  }
  std::uint32_t low = stored[0];
  std::uint32_t high = stored[1];
  WarpLanes::inclusive_scan(low);
  WarpLanes::inclusive_scan(high);
  const std::uint32_t low_total = WarpLanes::broadcast(low, kLanes - 1);
  const std::uint32_t body =
      static_cast<std::uint32_t>(segment_bytes(layout, count, mask_bytes, 0) - kSegmentChecksumBytes);
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned k = half * kLanes + lane;
    if (k >= count) continue;
    s.chunks[k].stored = stored[half];
    s.chunks[k].offset = body + (half == 0 ? low : low_total + high) - stored[half];
  }
  __syncwarp();  // every lane has read what the last one writes
  if (lane != kLanes - 1) return;
  s.record->mask_bytes = mask_bytes;
  s.record->slot = first_slot(tables, s);
  s.record->bytes = body + std::uint64_t{low_total} + high + kSegmentChecksumBytes;
}

/// Called by a warp: where a stream's segments begin, in the stream and in the index. `extra` bytes follow both.
__device__ __forceinline__ void place_stream(const StreamTables& tables, std::uint32_t i, std::uint64_t extra) {
  DeviceStream& stream = tables.streams[i];
  SegmentRecord* const records = tables.segment_records + std::uint64_t{i} * tables.segments;
  std::uint64_t offset = stream.first_offset;
  std::uint64_t index = 0;
  for (std::uint64_t begin = 0; begin < stream.segments; begin += kPlacedAtOnce * kLanes) {
    const std::uint64_t first = begin + std::uint64_t{kPlacedAtOnce} * WarpLanes::lane();
    std::uint64_t own[kPlacedAtOnce];
    std::uint64_t bytes = 0, indexed = 0;
    kernels::unroll<kPlacedAtOnce>([&](auto k) {
      own[k] = first + k < stream.segments ? records[first + k].bytes : 0;
      bytes += own[k];
      indexed += own[k] != 0 ? varint_bytes(own[k]) : 0;
    });
    std::uint64_t end = bytes, index_end = indexed;
    WarpLanes::inclusive_scan(end);
    WarpLanes::inclusive_scan(index_end);
    std::uint64_t at = offset + end - bytes, index_at = index + index_end - indexed;
    kernels::unroll<kPlacedAtOnce>([&](auto k) {
      if (first + k >= stream.segments) return;
      records[first + k].offset = at;
      records[first + k].index_offset = index_at;
      at += own[k];
      index_at += varint_bytes(own[k]);
    });
    offset += WarpLanes::broadcast(end, kLanes - 1);
    index += WarpLanes::broadcast(index_end, kLanes - 1);
  }
  if (WarpLanes::lane() != 0) return;
  stream.end = offset;
  stream.index_bytes = index;
  if (offset + index + extra > stream.capacity) stream.status = StatusCode::destination_too_small;
}

/// A warp for each place of a segment; the last one of a stream then places all of them.
__global__ void __launch_bounds__(kSegmentWarps* kLanes)
    place_segments(const __grid_constant__ StreamTables tables, const std::uint32_t* coded, std::uint64_t extra) {
  const std::uint32_t at = blockIdx.x * kSegmentWarps + threadIdx.x / kLanes;
  const std::uint32_t places = places_of_stream(tables);
  const std::uint32_t i = at / places;
  if (i >= tables.count) return;
  DeviceStream& stream = tables.streams[i];
  if (stream.status != StatusCode::ok) return;
  if (at % places < stream.segments) settle_segment(tables, segment_at(tables, at), coded);
  if (is_last_arrival(stream, places)) place_stream(tables, i, extra);
}

/// Writes the values of a chunk in C order; called by a warp.
__device__ __forceinline__ void copy_raw_chunk(const DeviceStream& stream, const GridBox& box, std::uint8_t* to) {
  const std::uint64_t element = dtype_bytes(stream.layout.dtype());
  const auto& extents = stream.layout.grid().extents;
  const std::uint64_t rows = box.extents[0] * box.extents[1];
  const std::uint64_t row_bytes = box.extents[2] * element;
  const std::uint8_t* const first = stream.window + (stream.layout.flat(box.begin) - stream.window_begin) * element;
  for (std::uint64_t r = 0; r < rows; ++r) {
    const std::uint64_t z = r / box.extents[1];
    const std::uint64_t y = r % box.extents[1];
    kernels::copy_bytes(to + r * row_bytes, first + (z * extents[1] + y) * extents[2] * element, row_bytes,
                        WarpLanes::lane(), kLanes);
  }
}

/// A warp for each chunk: its bytes to their place, or its place to the table of targets where the codec will write
/// them. Where there is no chunk nothing is stored.
__global__ void __launch_bounds__(kCopyThreads)
    write_chunks(const __grid_constant__ StreamTables tables, const __grid_constant__ EncodedSlots slots) {
  const std::uint32_t place = blockIdx.x * (kCopyThreads / kLanes) + threadIdx.x / kLanes;
  const std::uint32_t segment = place / tables.chunks;
  const std::uint32_t i = segment / tables.segments;
  if (i >= tables.count) return;
  const DeviceStream& stream = tables.streams[i];
  const ChunkRecord chunk = tables.chunk_records[place];
  const SegmentRecord& record = tables.segment_records[segment];
  if (stream.status != StatusCode::ok || segment % tables.segments >= stream.segments || chunk.stored == 0) return;
  std::uint8_t* const to = stream.bytes + record.offset + chunk.offset;
  if (chunk.form == ChunkForm::coded) {
    const std::uint64_t slot = record.slot + place % tables.chunks;
    if ((slots.sizes[slot] & kernels::kChunkInParts) != 0) {
      if (WarpLanes::lane() == 0) slots.targets[slot] = to;
      return;
    }
    kernels::copy_bytes(to, slots.slots + slot * slots.slot_bytes, chunk.stored, WarpLanes::lane(), kLanes);
  } else {
    const std::uint64_t number = stream.first_segment + segment % tables.segments;
    copy_raw_chunk(stream, stream.layout.chunk_box(number, place % tables.chunks), to);
  }
}

/// Called by a CTA: the checks of a segment's chunks, which are all written, and everything of it that is not a chunk.
__device__ __forceinline__ void seal_segment(const WarpSegment& s) {
  auto& hashing = kernels::shared_memory<SegmentHashShared>();
  const SegmentLayout& layout = s.stream->layout;
  const std::uint64_t count = layout.segment_chunks(s.number);
  const SegmentRecord& record = *s.record;
  std::uint8_t* const bytes = s.stream->bytes + record.offset;
  const unsigned lane = WarpLanes::lane();
  const unsigned warp = threadIdx.x / kLanes;
  const std::uint64_t table = segment_size_width(layout) + varint_bytes(record.mask_bytes);
  const std::uint64_t entry_bytes = table_entry_bytes(layout);
  const std::uint64_t mask = table + count * entry_bytes;
  const std::uint64_t head = mask + record.mask_bytes;
  // Hashing reads whole words: of the bytes before the first chunk none is written until all chunks have their checks.
  std::uint64_t check = 0;  // lane i has that of the warp's chunk i
  kernels::rolled(0, kChunksOfWarp, [&](unsigned i) {
    const std::uint64_t k = warp + std::uint64_t{i} * kSealWarps;
    if (k >= count) return;
    const std::uint64_t whole = kernels::warp_xxh3({bytes + s.chunks[k].offset, s.chunks[k].stored});
    if (lane == i) check = whole;
  });
  __syncthreads();
  const std::uint64_t own = warp + std::uint64_t{lane} * kSealWarps;
  if (lane < kChunksOfWarp && own < count) {
    ByteWriter entry({bytes + table + own * entry_bytes, static_cast<std::size_t>(entry_bytes)});
    s.chunks[own].check = static_cast<std::uint16_t>(check);
    put_table_entry(entry, layout, {s.chunks[own].form, s.chunks[own].check, s.chunks[own].stored});
  }
  if (threadIdx.x == 0) {
    ByteWriter start({bytes, static_cast<std::size_t>(table)});
    put_segment_start(start, layout, record.bytes, record.mask_bytes);
    kernels::put_leb128(s.stream->bytes + s.stream->end + record.index_offset, record.bytes);
  }
  if (record.mask_bytes != 0)
    kernels::copy_bytes(bytes + mask, record.mask, record.mask_bytes, threadIdx.x, kSealWarps * kLanes);
  __syncthreads();
  if (warp == 0) {
    const std::uint64_t head_check = bound_checksum(s, bytes, head);
    __syncwarp();  // hashing reads whole words, what is written next with them
    if (lane == 0) ByteWriter({bytes + head, kHeadCheckBytes}).u32(static_cast<std::uint32_t>(head_check));
  }
  __syncthreads();
  const std::uint64_t covered = record.bytes - kSegmentChecksumBytes;
  const std::uint64_t checksum = kernels::cta_xxh3(checksum_input(s, bytes, covered), hashing);
  if (threadIdx.x == 0) ByteWriter({bytes + covered, kSegmentChecksumBytes}).u64(checksum);
}

/// Called by a warp once all segments are sealed: what follows them and their index.
__device__ __forceinline__ void write_trailer(const DeviceStream& stream) {
  std::uint8_t* const trailer = stream.bytes + stream.end;
  std::uint8_t* const footer = trailer + stream.index_bytes;
  if (WarpLanes::lane() == 0) {
    ByteWriter sizes({footer, kFooterBytes});
    put_footer_sizes(sizes, stream.index_bytes, stream.end);
  }
  __syncwarp();
  const std::uint64_t check = trailer_check(stream, trailer, stream.index_bytes);
  __syncwarp();  // hashing reads whole words, what is written next with them
  if (WarpLanes::lane() == 0) {
    ByteWriter end({footer + kFooterBytes - kFooterUncheckedBytes, kFooterUncheckedBytes});
    put_footer_end(end, check);
  }
}

/// A CTA for each place of a segment. The last one of a stream writes its trailer and tells of it, if there are
/// outcomes.
__global__ void __launch_bounds__(kSealWarps* kLanes)
    seal_segments(const __grid_constant__ StreamTables tables, const __grid_constant__ DeviceArrays arrays,
                  DeviceOutcome* outcomes) {
  const std::uint32_t places = places_of_stream(tables);
  const std::uint32_t i = blockIdx.x / places;
  DeviceStream& stream = tables.streams[i];
  const bool good = stream.status == StatusCode::ok;
  if (good && blockIdx.x % places < stream.segments) seal_segment(segment_at(tables, blockIdx.x));
  if (outcomes == nullptr) return;
  __syncthreads();
  if (threadIdx.x >= kLanes || !is_last_arrival(stream, places)) return;
  if (good) write_trailer(stream);
  if (threadIdx.x == 0) tell(arrays, i, stream.status, stream.end + stream.index_bytes + kFooterBytes, outcomes);
}

cudaError_t launch_sealing(const StreamTables& tables, const DeviceArrays& arrays, DeviceOutcome* outcomes,
                           cudaStream_t queue) {
  return kernels::launch(&seal_segments,
                         {tables.count * places_of_stream(tables), kSealWarps * kLanes, sizeof(SegmentHashShared)},
                         queue, tables, arrays, outcomes);
}

}  // namespace

cudaError_t place_segments_async(const StreamTables& tables, const EncodedSlots& slots, std::uint64_t extra,
                                 cudaStream_t queue) {
  if (tables.count == 0) return cudaSuccess;
  const std::uint32_t warps = tables.count * places_of_stream(tables);
  return kernels::launch(&place_segments, {(warps + kSegmentWarps - 1) / kSegmentWarps, kSegmentWarps * kLanes}, queue,
                         tables, slots.sizes, extra);
}

cudaError_t write_chunks_async(const StreamTables& tables, const EncodedSlots& slots, cudaStream_t queue) {
  if (tables.count == 0 || tables.segments == 0) return cudaSuccess;
  const std::uint64_t chunks = std::uint64_t{tables.count} * tables.segments * tables.chunks;
  constexpr unsigned kWarps = kCopyThreads / kLanes;
  const auto blocks = static_cast<unsigned>((chunks + kWarps - 1) / kWarps);
  return kernels::launch(&write_chunks, {blocks, kCopyThreads}, queue, tables, slots);
}

cudaError_t seal_segments_async(const StreamTables& tables, cudaStream_t queue) {
  if (tables.count == 0 || tables.segments == 0) return cudaSuccess;
  return launch_sealing(tables, {}, nullptr, queue);
}

cudaError_t seal_streams_async(const StreamTables& tables, const DeviceArrays& arrays, DeviceOutcome* outcomes,
                               cudaStream_t queue) {
  return launch_sealing(tables, arrays, outcomes, queue);
}

}  // namespace quern::cuda

// Settling, placing, writing and sealing segments.
#include "libcompress/cuda/stream/segment_writer.cuh"

#include "kernels/common/cuda/copy_bytes.cuh"
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "libcompress/cuda/stream/warp_segment.cuh"
#include "libcompress/format/grid/segment_frame.h"

namespace quern::cuda {
namespace {

using kernels::kLanes;
using kernels::WarpLanes;

constexpr unsigned kPlaceThreads = 1024;
constexpr unsigned kCopyThreads = 128;
constexpr unsigned kSealWarps = kSegmentHashWarps;
constexpr unsigned kChunksOfWarp = kMaxSegmentChunks / kSealWarps;

__device__ __forceinline__ std::uint64_t raw_chunk_bytes(const SegmentLayout& layout, std::uint64_t segment,
                                                         std::uint64_t k) {
  return layout.chunk_box(segment, k).elems() * dtype_bytes(layout.dtype());
}

/// A warp for each segment: forms, stored bytes, and offsets within the segment.
__global__ void __launch_bounds__(kSegmentWarps* kLanes)
    settle_segments(const __grid_constant__ StreamTables tables, const std::uint32_t* coded) {
  const WarpSegment s = segment_of_warp(tables);
  if (s.stream == nullptr || s.stream->status != StatusCode::ok) return;
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

struct PlaceShared {
  std::uint64_t bytes[kPlaceThreads / kLanes];
  std::uint64_t index[kPlaceThreads / kLanes];
};

/// A CTA for each stream: where its segments begin, in the stream and in the index.
__global__ void __launch_bounds__(kPlaceThreads)
    place_segments(const __grid_constant__ StreamTables tables, std::uint64_t extra) {
  PlaceShared& shared = kernels::shared_memory<PlaceShared>();
  DeviceStream& stream = tables.streams[blockIdx.x];
  if (stream.status != StatusCode::ok) return;
  SegmentRecord* const records = tables.segment_records + std::uint64_t{blockIdx.x} * tables.segments;
  const unsigned lane = WarpLanes::lane();
  const unsigned warp = threadIdx.x / kLanes;
  std::uint64_t offset = stream.first_offset;
  std::uint64_t index = 0;
  for (std::uint64_t begin = 0; begin < stream.segments; begin += kPlaceThreads) {
    const std::uint64_t s = begin + threadIdx.x;
    const std::uint64_t own_bytes = s < stream.segments ? records[s].bytes : 0;
    const std::uint64_t own_index = s < stream.segments ? varint_bytes(own_bytes) : 0;
    std::uint64_t bytes = own_bytes;
    std::uint64_t indexed = own_index;
    WarpLanes::inclusive_scan(bytes);
    WarpLanes::inclusive_scan(indexed);
    if (lane == kLanes - 1) {
      shared.bytes[warp] = bytes;
      shared.index[warp] = indexed;
    }
    __syncthreads();
    std::uint64_t warp_bytes = lane < kPlaceThreads / kLanes ? shared.bytes[lane] : 0;
    std::uint64_t warp_index = lane < kPlaceThreads / kLanes ? shared.index[lane] : 0;
    WarpLanes::inclusive_scan(warp_bytes);
    WarpLanes::inclusive_scan(warp_index);
    const std::uint64_t before_bytes = WarpLanes::broadcast(warp_bytes, (warp + kLanes - 1) % kLanes);
    const std::uint64_t before_index = WarpLanes::broadcast(warp_index, (warp + kLanes - 1) % kLanes);
    if (s < stream.segments) {
      records[s].offset = offset + (warp == 0 ? 0 : before_bytes) + bytes - own_bytes;
      records[s].index_offset = index + (warp == 0 ? 0 : before_index) + indexed - own_index;
    }
    offset += WarpLanes::broadcast(warp_bytes, kLanes - 1);
    index += WarpLanes::broadcast(warp_index, kLanes - 1);
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  stream.end = offset;
  stream.index_bytes = index;
  if (offset + index + extra > stream.capacity) stream.status = StatusCode::destination_too_small;
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

/// A CTA for each segment: the checks of its chunks, which are all written, and everything of it that is not a chunk.
__global__ void __launch_bounds__(kSealWarps* kLanes) seal_segments(const __grid_constant__ StreamTables tables) {
  const WarpSegment s = segment_at(tables, blockIdx.x);
  if (s.stream == nullptr || s.stream->status != StatusCode::ok) return;
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

}  // namespace

cudaError_t place_segments_async(const StreamTables& tables, const EncodedSlots& slots, std::uint64_t extra,
                                 cudaStream_t queue) {
  if (tables.count == 0) return cudaSuccess;
  if (tables.segments != 0) {
    const cudaError_t error =
        kernels::launch(&settle_segments, {segment_blocks(tables), kSegmentWarps * kLanes}, queue, tables, slots.sizes);
    if (error != cudaSuccess) return error;
  }
  return kernels::launch(&place_segments, {tables.count, kPlaceThreads, sizeof(PlaceShared)}, queue, tables, extra);
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
  const auto segments = static_cast<unsigned>(std::uint64_t{tables.count} * tables.segments);
  return kernels::launch(&seal_segments, {segments, kSealWarps * kLanes, sizeof(SegmentHashShared)}, queue, tables);
}

}  // namespace quern::cuda

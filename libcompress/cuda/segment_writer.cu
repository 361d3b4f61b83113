// Settling, placing, writing and sealing segments.
#include "libcompress/cuda/segment_writer.cuh"

#include "kernels/cuda/copy_bytes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "libcompress/cuda/warp_segment.cuh"
#include "libcompress/format/segment_frame.h"

namespace quern::cuda {
namespace {

using kernels::kLanes;
using kernels::WarpLanes;

constexpr unsigned kPlaceThreads = 1024;
constexpr unsigned kCopyThreads = 128;

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
    const std::uint32_t bytes = chunk.all_masked ? 0 : sizes[k];
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
  if (lane != kLanes - 1) return;
  s.record->mask_bytes = mask_bytes;
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

/// Writes the values of a chunk in C order.
__device__ __forceinline__ void copy_raw_chunk(const DeviceStream& stream, const GridBox& box, std::uint8_t* to) {
  const std::uint64_t element = dtype_bytes(stream.layout.dtype());
  const auto& extents = stream.layout.grid().extents;
  const std::uint64_t rows = box.extents[0] * box.extents[1];
  const std::uint64_t row_bytes = box.extents[2] * element;
  const std::uint8_t* const first = stream.window + (stream.layout.flat(box.begin) - stream.window_begin) * element;
  for (std::uint64_t r = threadIdx.x / kLanes; r < rows; r += kCopyThreads / kLanes) {
    const std::uint64_t z = r / box.extents[1];
    const std::uint64_t y = r % box.extents[1];
    kernels::copy_bytes(to + r * row_bytes, first + (z * extents[1] + y) * extents[2] * element, row_bytes,
                        WarpLanes::lane(), kLanes);
  }
}

/// A CTA for each chunk: its bytes to their place, and their check.
__global__ void __launch_bounds__(kCopyThreads)
    write_chunks(const __grid_constant__ StreamTables tables, const __grid_constant__ ChunkSlots slots) {
  const std::uint64_t place = blockIdx.x;
  const WarpSegment s = segment_at(tables, place / tables.chunks);
  const std::uint64_t k = place % tables.chunks;
  if (s.stream == nullptr || s.stream->status != StatusCode::ok || k >= s.stream->layout.segment_chunks(s.number))
    return;
  ChunkRecord& chunk = s.chunks[k];
  std::uint8_t* const to = s.stream->bytes + s.record->offset + chunk.offset;
  if (chunk.form == ChunkForm::coded)
    kernels::copy_bytes(to, slots.slots + (first_slot(tables, s) + k) * slots.slot_bytes, chunk.stored, threadIdx.x,
                        kCopyThreads);
  if (chunk.form == ChunkForm::raw) copy_raw_chunk(*s.stream, s.stream->layout.chunk_box(s.number, k), to);
  __syncthreads();
  if (threadIdx.x >= kLanes) return;
  const std::uint64_t check = kernels::warp_xxh3({to, chunk.stored});
  if (threadIdx.x == 0) chunk.check = static_cast<std::uint16_t>(check);
}

/// A warp for each segment: everything of it that is not a chunk.
__global__ void __launch_bounds__(kSegmentWarps* kLanes, 4) seal_segments(const __grid_constant__ StreamTables tables) {
  const WarpSegment s = segment_of_warp(tables);
  if (s.stream == nullptr || s.stream->status != StatusCode::ok) return;
  const SegmentLayout& layout = s.stream->layout;
  const std::uint64_t count = layout.segment_chunks(s.number);
  const SegmentRecord& record = *s.record;
  std::uint8_t* const bytes = s.stream->bytes + record.offset;
  const unsigned lane = WarpLanes::lane();
  const std::uint64_t table = segment_size_width(layout) + varint_bytes(record.mask_bytes);
  if (lane == 0) {
    ByteWriter start({bytes, static_cast<std::size_t>(table)});
    put_segment_start(start, layout, record.bytes, record.mask_bytes);
    kernels::put_leb128(s.stream->bytes + s.stream->end + record.index_offset, record.bytes);
  }
  const std::uint64_t entry_bytes = table_entry_bytes(layout);
  for (std::uint64_t k = lane; k < count; k += kLanes) {
    ByteWriter entry({bytes + table + k * entry_bytes, static_cast<std::size_t>(entry_bytes)});
    put_table_entry(entry, layout, {s.chunks[k].form, s.chunks[k].check, s.chunks[k].stored});
  }
  const std::uint64_t mask = table + count * entry_bytes;
  if (record.mask_bytes != 0) kernels::copy_bytes(bytes + mask, record.mask, record.mask_bytes, lane, kLanes);
  __syncwarp();
  const std::uint64_t head = mask + record.mask_bytes;
  const std::uint64_t head_check = bound_checksum(s, bytes, head);
  if (lane == 0) ByteWriter({bytes + head, kHeadCheckBytes}).u32(static_cast<std::uint32_t>(head_check));
  __syncwarp();
  const std::uint64_t covered = record.bytes - kSegmentChecksumBytes;
  const std::uint64_t checksum = bound_checksum(s, bytes, covered);
  if (lane == 0) ByteWriter({bytes + covered, kSegmentChecksumBytes}).u64(checksum);
}

}  // namespace

cudaError_t place_segments_async(const StreamTables& tables, const ChunkSlots& slots, std::uint64_t extra,
                                 cudaStream_t queue) {
  if (tables.count == 0) return cudaSuccess;
  if (tables.segments != 0) {
    const cudaError_t error =
        kernels::launch(&settle_segments, {segment_blocks(tables), kSegmentWarps * kLanes}, queue, tables, slots.coded);
    if (error != cudaSuccess) return error;
  }
  return kernels::launch(&place_segments, {tables.count, kPlaceThreads, sizeof(PlaceShared)}, queue, tables, extra);
}

cudaError_t write_segments_async(const StreamTables& tables, const ChunkSlots& slots, cudaStream_t queue) {
  if (tables.count == 0 || tables.segments == 0) return cudaSuccess;
  const std::uint64_t chunks = std::uint64_t{tables.count} * tables.segments * tables.chunks;
  const cudaError_t error =
      kernels::launch(&write_chunks, {static_cast<unsigned>(chunks), kCopyThreads}, queue, tables, slots);
  if (error != cudaSuccess) return error;
  return kernels::launch(&seal_segments, {segment_blocks(tables), kSegmentWarps * kLanes}, queue, tables);
}

}  // namespace quern::cuda

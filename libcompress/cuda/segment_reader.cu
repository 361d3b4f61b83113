// Checking segments, and the chunks that take no codec.
#include "libcompress/cuda/segment_reader.cuh"

#include "kernels/cuda/copy_bytes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "libcompress/cuda/warp_segment.cuh"
#include "libcompress/format/segment_frame.h"

namespace quern::cuda {
namespace {

using kernels::kLanes;
using kernels::WarpLanes;

constexpr unsigned kCopyThreads = 128;
constexpr unsigned kJoinThreads = 256;

/// Size, mask size and head check; the same in all lanes.
__device__ __forceinline__ StatusCode read_head(const WarpSegment& s, std::span<const std::uint8_t> bytes,
                                                SegmentHead& head) {
  const SegmentLayout& layout = s.stream->layout;
  std::uint64_t size = 0;
  if (!read_segment_size(bytes, layout, s.number, size).ok() || size != bytes.size()) return StatusCode::corrupt;
  if (!read_segment_head(bytes, layout, s.number, head).ok()) return StatusCode::corrupt;
  if (head.chunks_at() + kSegmentChecksumBytes > size) return StatusCode::truncated;
  const auto check = static_cast<std::uint32_t>(bound_checksum(s, bytes.data(), head.check_at));
  return ByteReader(bytes.subspan(head.check_at, kHeadCheckBytes)).u32() == check ? StatusCode::ok
                                                                                  : StatusCode::checksum_mismatch;
}

/// The table's entries to the chunk records; false when one of them, or their sum, is impossible.
__device__ __forceinline__ bool read_table(const WarpSegment& s, std::span<const std::uint8_t> bytes,
                                           const SegmentHead& head) {
  const SegmentLayout& layout = s.stream->layout;
  const std::uint64_t count = layout.segment_chunks(s.number);
  const unsigned lane = WarpLanes::lane();
  std::uint64_t stored[2] = {0, 0};
  bool good = true;
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned k = half * kLanes + lane;
    if (k >= count) continue;
    TableEntry entry;
    good = read_table_entry(bytes.subspan(head.table_at), layout, s.number, k, entry).ok() && good;
    good = good && !(s.stream->stored_only && entry.form == ChunkForm::coded);
    stored[half] = entry.bytes;
    s.chunks[k].form = entry.form;
    s.chunks[k].stored = static_cast<std::uint32_t>(entry.bytes);
    s.chunks[k].check = entry.check;
  }
  std::uint64_t low = stored[0];
  std::uint64_t high = stored[1];
  WarpLanes::inclusive_scan(low);
  WarpLanes::inclusive_scan(high);
  const std::uint64_t low_total = WarpLanes::broadcast(low, kLanes - 1);
  const std::uint64_t end = head.chunks_at() + low_total + WarpLanes::broadcast(high, kLanes - 1);
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned k = half * kLanes + lane;
    if (k < count)
      s.chunks[k].offset =
          static_cast<std::uint32_t>(head.chunks_at() + (half == 0 ? low : low_total + high) - stored[half]);
  }
  return !WarpLanes::any(!good) && end + kSegmentChecksumBytes == bytes.size();
}

__device__ __forceinline__ StatusCode read_segment(const WarpSegment& s) {
  const SegmentRecord& record = *s.record;
  if (record.offset > s.stream->capacity || record.bytes > s.stream->capacity - record.offset)
    return StatusCode::truncated;
  const std::span<const std::uint8_t> bytes{s.stream->bytes + record.offset, static_cast<std::size_t>(record.bytes)};
  SegmentHead head;
  const StatusCode status = read_head(s, bytes, head);
  if (status != StatusCode::ok) return status;
  if (!read_table(s, bytes, head)) return StatusCode::corrupt;
  const std::uint64_t covered = record.bytes - kSegmentChecksumBytes;
  const std::uint64_t checksum = bound_checksum(s, bytes.data(), covered);
  if (checksum != ByteReader(bytes.subspan(covered)).u64()) return StatusCode::checksum_mismatch;
  if (WarpLanes::lane() == 0) {
    s.record->mask_bytes = static_cast<std::uint32_t>(head.mask_bytes);
    s.record->mask = bytes.data() + head.mask_at;
  }
  return StatusCode::ok;
}

/// A warp for each segment.
__global__ void __launch_bounds__(kSegmentWarps* kLanes)
    read_segments(const __grid_constant__ StreamTables tables, kernels::StoredChunk* stored) {
  const WarpSegment s = segment_of_warp(tables);
  if (s.stream == nullptr) return;
  const StatusCode status = s.stream->status != StatusCode::ok ? s.stream->status : read_segment(s);
  __syncwarp();
  if (WarpLanes::lane() == 0) s.record->status = status;
  const std::uint64_t count = s.stream->layout.segment_chunks(s.number);
  for (unsigned k = WarpLanes::lane(); k < tables.chunks; k += kLanes) {
    kernels::StoredChunk chunk;
    if (status == StatusCode::ok && k < count && s.chunks[k].form == ChunkForm::coded)
      chunk = {s.stream->bytes + s.record->offset + s.chunks[k].offset, s.chunks[k].stored};
    stored[s.first_place + k] = chunk;
  }
}

/// A CTA for each chunk.
__global__ void __launch_bounds__(kCopyThreads)
    copy_plain_chunks(const __grid_constant__ StreamTables tables, const kernels::CudaChunk* chunks) {
  const std::uint64_t slot = blockIdx.x;
  const WarpSegment s = segment_at(tables, slot / tables.chunks);
  if (s.stream == nullptr || s.record->status != StatusCode::ok || chunks[slot].empty()) return;
  const ChunkRecord& record = tables.chunk_records[slot];
  if (record.form == ChunkForm::coded) return;
  const kernels::ChunkBox box = chunks[slot].box;
  const std::uint64_t element = dtype_bytes(s.stream->layout.dtype());
  auto* const values = static_cast<std::uint8_t*>(chunks[slot].values);
  const std::uint8_t* const from = s.stream->bytes + s.record->offset + record.offset;
  const std::uint64_t row_bytes = box.extents[2] * element;
  for (std::uint64_t r = threadIdx.x / kLanes; r < box.extents[0] * box.extents[1]; r += kCopyThreads / kLanes) {
    std::uint8_t* const row =
        values + (r / box.extents[1] * box.strides[0] + r % box.extents[1] * box.strides[1]) * element;
    if (record.form == ChunkForm::raw) {
      kernels::copy_bytes(row, from + r * row_bytes, row_bytes, WarpLanes::lane(), kLanes);
    } else {
      for (std::uint64_t i = WarpLanes::lane(); i < row_bytes; i += kLanes) row[i] = 0;
    }
  }
}

constexpr StatusCode code_of(kernels::MaskDamage damage) {
  switch (damage) {
    case kernels::MaskDamage::none: return StatusCode::ok;
    case kernels::MaskDamage::corrupt: return StatusCode::corrupt;
    case kernels::MaskDamage::truncated: return StatusCode::truncated;
    case kernels::MaskDamage::trailing: return StatusCode::trailing_data;
  }
  return StatusCode::internal;
}

struct JoinShared {
  std::uint64_t first[kJoinThreads / kLanes];
};

/// A CTA for each stream: the first segment that failed.
__global__ void __launch_bounds__(kJoinThreads)
    join_statuses(const __grid_constant__ StreamTables tables, const std::uint32_t* damaged,
                  const kernels::MaskDamage* masks) {
  JoinShared& shared = kernels::shared_memory<JoinShared>();
  DeviceStream& stream = tables.streams[blockIdx.x];
  if (stream.status != StatusCode::ok) return;
  const std::uint64_t base = std::uint64_t{blockIdx.x} * tables.segments;
  constexpr std::uint64_t kNone = ~UINT64_C(0);
  std::uint64_t first = kNone;  // number and status of the first one that failed, as one number
  for (std::uint64_t s = threadIdx.x; s < stream.segments && first == kNone; s += kJoinThreads) {
    StatusCode status = tables.segment_records[base + s].status;
    if (status == StatusCode::ok && masks != nullptr) status = code_of(masks[base + s]);
    const std::uint64_t count = stream.layout.segment_chunks(stream.first_segment + s);
    for (std::uint64_t k = 0; k < count && status == StatusCode::ok; ++k)
      if (damaged[(base + s) * tables.chunks + k] != 0) status = StatusCode::corrupt;
    if (status != StatusCode::ok) first = s << 8 | static_cast<std::uint64_t>(status);
  }
  for (unsigned distance = kLanes / 2; distance != 0; distance /= 2) {
    const std::uint64_t other = __shfl_xor_sync(WarpLanes::kAll, first, static_cast<int>(distance));
    first = other < first ? other : first;
  }
  if (WarpLanes::lane() == 0) shared.first[threadIdx.x / kLanes] = first;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned w = 1; w < kJoinThreads / kLanes; ++w) first = shared.first[w] < first ? shared.first[w] : first;
  if (first != kNone) stream.status = static_cast<StatusCode>(first & 0xff);
}

}  // namespace

cudaError_t read_segments_async(const StreamTables& tables, kernels::StoredChunk* stored, cudaStream_t queue) {
  if (tables.count == 0 || tables.segments == 0) return cudaSuccess;
  return kernels::launch(&read_segments, {segment_blocks(tables), kSegmentWarps * kLanes}, queue, tables, stored);
}

cudaError_t copy_plain_chunks_async(const StreamTables& tables, const kernels::CudaChunk* chunks, cudaStream_t queue) {
  const std::uint64_t slots = std::uint64_t{tables.count} * tables.segments * tables.chunks;
  if (slots == 0) return cudaSuccess;
  return kernels::launch(&copy_plain_chunks, {static_cast<unsigned>(slots), kCopyThreads}, queue, tables, chunks);
}

cudaError_t join_statuses_async(const StreamTables& tables, const std::uint32_t* damaged,
                                const kernels::MaskDamage* masks, cudaStream_t queue) {
  if (tables.count == 0) return cudaSuccess;
  return kernels::launch(&join_statuses, {tables.count, kJoinThreads, sizeof(JoinShared)}, queue, tables, damaged,
                         masks);
}

}  // namespace quern::cuda

// Checking segments, and the chunks that take no codec.
#include "libcompress/cuda/stream/segment_reader.cuh"

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "libcompress/cuda/stream/segment_boxes.cuh"
#include "libcompress/format/grid/segment_frame.h"

namespace quern::cuda {
namespace {

using kernels::kLanes;
using kernels::WarpLanes;

constexpr unsigned kReadThreads = kSegmentHashWarps * kLanes;

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

struct ReadShared {
  SegmentHashShared hashing;
  SegmentHead head;
  StatusCode status;
};

/// Called by one warp: everything but the checksum; the same in all lanes.
__device__ __forceinline__ StatusCode read_head_and_table(const WarpSegment& s, std::span<const std::uint8_t> bytes,
                                                          SegmentHead& head) {
  const StatusCode status = read_head(s, bytes, head);
  if (status != StatusCode::ok) return status;
  return read_table(s, bytes, head) ? StatusCode::ok : StatusCode::corrupt;
}

/// Called by all threads; the same in all of them.
__device__ __forceinline__ StatusCode read_segment(const WarpSegment& s, ReadShared& shared) {
  if (s.stream->status != StatusCode::ok) return s.stream->status;
  const SegmentRecord& record = *s.record;
  const std::uint64_t offset = record.offset;
  const std::uint64_t size = record.bytes;
  if (offset > s.stream->capacity || size > s.stream->capacity - offset) return StatusCode::truncated;
  const std::span<const std::uint8_t> bytes{s.stream->bytes + offset, static_cast<std::size_t>(size)};
  // The warp that sums up no blocks of the checksum has the time for the rest.
  if (threadIdx.x < kLanes) {
    SegmentHead head;
    const StatusCode status = read_head_and_table(s, bytes, head);
    if (WarpLanes::lane() == 0) {
      shared.head = head;
      shared.status = status;
    }
  }
  if (size < kSegmentChecksumBytes) {  // shorter than any head
    __syncthreads();
    return shared.status;
  }
  const std::uint64_t covered = size - kSegmentChecksumBytes;
  const std::uint64_t checksum = kernels::cta_xxh3(checksum_input(s, bytes.data(), covered), shared.hashing);
  if (shared.status != StatusCode::ok) return shared.status;
  return checksum == ByteReader(bytes.subspan(covered)).u64() ? StatusCode::ok : StatusCode::checksum_mismatch;
}

__device__ __forceinline__ kernels::StoredChunk stored_chunk(const ChunkRecord& chunk, const std::uint8_t* segment) {
  using kernels::StoredForm;
  const StoredForm form = chunk.form == ChunkForm::coded ? StoredForm::coded
                          : chunk.form == ChunkForm::raw ? StoredForm::raw
                                                         : StoredForm::zeros;
  return {segment + chunk.offset, chunk.stored, form};
}

/// Boxes of a segment's chunks, and this segment's share of the slots that no chunk has; called by a CTA.
__device__ __forceinline__ void lay_out_boxes(const StreamTables& tables, kernels::CudaChunk* boxes) {
  const std::uint32_t i = blockIdx.x / tables.segments;
  const std::uint32_t local = blockIdx.x % tables.segments;
  const DeviceStream& stream = tables.streams[i];
  const std::uint64_t used = chunks_of(stream);
  for (std::uint64_t n = used + local * kReadThreads + threadIdx.x; n < tables.slots;
       n += std::uint64_t{tables.segments} * kReadThreads)
    boxes[std::uint64_t{i} * tables.slots + n] = {};
  if (stream.status != StatusCode::ok || local >= stream.segments) return;
  const WarpSegment s = segment_at(tables, blockIdx.x);
  const std::uint64_t count = stream.layout.segment_chunks(s.number);
  const std::uint64_t slot = first_slot(tables, s);
  for (unsigned k = threadIdx.x; k < count; k += kReadThreads)
    boxes[slot + k] = chunk_in_window(stream, local, k, slot + k);
}

/// One thread: the mask of a segment that is good.
__device__ __forceinline__ kernels::RestoreJob restore_job(const WarpSegment& s, const std::uint8_t* bytes,
                                                           const SegmentHead& head, kernels::MaskDamage* damage) {
  kernels::RestoreJob job;
  s.record->mask_bytes = static_cast<std::uint32_t>(head.mask_bytes);
  s.record->mask = bytes + head.mask_at;
  if (head.mask_bytes == 0) return job;
  place_segment(s, job);
  job.stored = s.record->mask;
  job.bytes = s.record->mask_bytes;
  job.damage = damage;
  job.may_be_levels = s.stream->mask_levels;
  return job;
}

/// A CTA for each place of a segment.
__global__ void __launch_bounds__(kReadThreads)
    read_segments(const __grid_constant__ StreamTables tables, const __grid_constant__ ReadPlaces places) {
  lay_out_boxes(tables, places.boxes);
  const WarpSegment s = segment_at(tables, blockIdx.x);
  kernels::RestoreJob job;
  if (s.stream != nullptr) {
    auto& shared = kernels::shared_memory<ReadShared>();
    const StatusCode status = read_segment(s, shared);
    // Only a segment that is good is known to lie within the stream.
    const std::uint8_t* const bytes = status == StatusCode::ok ? s.stream->bytes + s.record->offset : nullptr;
    if (s.stream->status == StatusCode::ok) {
      const std::uint64_t count = s.stream->layout.segment_chunks(s.number);
      const std::uint64_t slot = first_slot(tables, s);
      for (unsigned k = threadIdx.x; k < count; k += kReadThreads)
        places.stored[slot + k] = status == StatusCode::ok ? stored_chunk(s.chunks[k], bytes) : kernels::StoredChunk{};
    }
    if (threadIdx.x == 0) {
      if (status == StatusCode::ok) job = restore_job(s, bytes, shared.head, places.mask_damage + blockIdx.x);
      s.record->status = status;
    }
  }
  if (threadIdx.x != 0) return;
  places.restores[blockIdx.x] = job;
  places.mask_damage[blockIdx.x] = kernels::MaskDamage::none;
}

}  // namespace

cudaError_t read_segments_async(const StreamTables& tables, const ReadPlaces& places, cudaStream_t queue) {
  if (tables.count == 0 || tables.segments == 0) return cudaSuccess;
  return kernels::launch(&read_segments, {tables.count * tables.segments, kReadThreads, sizeof(ReadShared)}, queue,
                         tables, places);
}

}  // namespace quern::cuda

// Trailers read, and outcomes: a warp or a CTA for each stream.
#include "libcompress/cuda/stream/stream_end.cuh"

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/mask/cuda/entry_points.h"
#include "libcompress/cuda/stream/outcome.cuh"
#include "libcompress/cuda/stream/warp_segment.cuh"

namespace quern::cuda {
namespace {

using kernels::kLanes;
using kernels::WarpLanes;

/// Where the trailer of a stream of a known size begins, and its index; the same in all lanes.
__device__ __forceinline__ StatusCode find_trailer(const DeviceStream& stream, Footer& footer, std::uint64_t& begin) {
  const std::span<const std::uint8_t> all(stream.bytes, static_cast<std::size_t>(stream.capacity));
  const std::span<const std::uint8_t> rest = all.subspan(static_cast<std::size_t>(stream.first_offset));
  const Fault fault = read_footer(rest, footer);
  if (!fault.ok()) return code_of(fault.what);
  if (footer.stream_bytes > stream.capacity) return StatusCode::truncated;
  if (footer.stream_bytes < stream.capacity) return StatusCode::trailing_data;
  if (footer.index_bytes > rest.size() - kFooterBytes) return StatusCode::corrupt;
  begin = stream.capacity - kFooterBytes - footer.index_bytes;
  return code_of(check_index_bytes(footer, stream.capacity - begin, stream.layout.segments()).what);
}

/// One lane: the segments' places from the index.
__device__ __forceinline__ StatusCode walk_index(const DeviceStream& stream, const Footer& footer, std::uint64_t begin,
                                                 SegmentRecord* records) {
  IndexWalk walk({stream.bytes + begin, static_cast<std::size_t>(footer.index_bytes)}, footer, stream.first_offset);
  std::uint64_t offset = stream.first_offset;
  for (std::uint64_t s = 0; s < stream.segments && walk.fault().ok(); ++s) {
    const std::uint64_t end = walk.next();
    records[s].offset = offset;
    records[s].bytes = end - offset;
    offset = end;
  }
  walk.finish();
  return code_of(walk.fault().what);
}

/// A warp: the same for an index in which nothing is wrong and no number takes more than four bytes, a lane to a byte.
/// False: walk_index has to say what it is.
__device__ __forceinline__ bool read_index(const DeviceStream& stream, const Footer& footer, std::uint64_t begin,
                                           SegmentRecord* records) {
  const std::uint8_t* const index = stream.bytes + begin;
  const unsigned lane = WarpLanes::lane();
  std::uint64_t segments = 0;  // found so far, and where they end
  std::uint64_t offset = stream.first_offset;
  unsigned open = 0;      // bytes of the number that the window begins within
  std::uint32_t low = 0;  // and their bits
  std::uint32_t ahead = lane < footer.index_bytes ? index[lane] : 0;
  for (std::uint64_t at = 0; at < footer.index_bytes; at += kLanes) {
    const bool here = at + lane < footer.index_bytes;
    const std::uint32_t byte = ahead;
    if (at + kLanes + lane < footer.index_bytes) ahead = index[at + kLanes + lane];
    const std::uint32_t ends = WarpLanes::ballot(here && byte < 0x80);
    const std::uint32_t before = ends & ((1u << lane) - 1);
    const unsigned first = before == 0 ? 0 : static_cast<unsigned>(32 - __clz(static_cast<int>(before)));
    const unsigned bytes = lane - first + 1 + (before == 0 ? open : 0);  // of the lane's number, up to the lane
    // Its own bits are the highest; then come those of up to three lanes before.
    std::uint32_t number = byte & 0x7F;
    for (unsigned back = 1; back < 4; ++back) {
      const std::uint32_t other = __shfl_up_sync(WarpLanes::kAll, byte, back);
      if (lane >= first + back) number = number << 7 | (other & 0x7F);
    }
    if (before == 0 && open != 0) number = number << (7 * open) | low;
    const bool is_end = (ends >> lane & 1) != 0;
    const bool bad = here && (bytes > 4 || (is_end && bytes > 1 && byte == 0));
    if (WarpLanes::any(bad)) return false;
    std::uint64_t sum = is_end ? number : 0;
    WarpLanes::inclusive_scan(sum);
    const std::uint64_t ordinal = segments + static_cast<unsigned>(__popc(before));
    if (is_end && ordinal < stream.segments) {
      records[ordinal].offset = offset + sum - number;
      records[ordinal].bytes = number;
    }
    offset += WarpLanes::broadcast(sum, kLanes - 1);
    segments += static_cast<unsigned>(__popc(ends));
    const std::uint64_t rest = footer.index_bytes - at;
    const unsigned last = rest < kLanes ? static_cast<unsigned>(rest) - 1 : kLanes - 1;
    const bool closed = (ends >> last & 1) != 0;
    open = closed ? 0 : WarpLanes::broadcast(bytes, last);
    low = closed ? 0 : WarpLanes::broadcast(number, last);
  }
  return open == 0 && segments == stream.segments && offset + footer.index_bytes + kFooterBytes == footer.stream_bytes;
}

__device__ __forceinline__ bool has_room(const StreamTables& tables, std::uint64_t mask_bytes,
                                         const DeviceStream& stream) {
  const SegmentLayout& layout = stream.layout;
  if (layout.segments() > tables.segments || layout.chunks() > (stream.stored_only ? tables.slots : tables.coded))
    return false;
  if (layout.segments() == 0) return true;
  const Index3 e = layout.segment_box(0).extents;
  return layout.segment_chunks(0) <= tables.chunks &&
         kernels::restoring_bytes({e[0], e[1], e[2]}, stream.mask_levels) <= mask_bytes;
}

/// A warp for each stream.
__global__ void __launch_bounds__(kLanes)
    read_trailers(const __grid_constant__ StreamTables tables, std::uint64_t mask_bytes) {
  DeviceStream& stream = tables.streams[blockIdx.x];
  if (stream.status != StatusCode::ok) return;
  Footer footer;
  std::uint64_t begin = 0;
  StatusCode status = StatusCode::unsupported;
  if (has_room(tables, mask_bytes, stream)) status = find_trailer(stream, footer, begin);
  if (status == StatusCode::ok &&
      static_cast<std::uint32_t>(trailer_check(stream, stream.bytes + begin, footer.index_bytes)) != footer.check)
    status = StatusCode::checksum_mismatch;
  SegmentRecord* const records = tables.segment_records + std::uint64_t{blockIdx.x} * tables.segments;
  const bool read = status == StatusCode::ok && read_index(stream, footer, begin, records);
  __syncwarp();
  if (WarpLanes::lane() != 0) return;
  if (status == StatusCode::ok && !read) status = walk_index(stream, footer, begin, records);
  stream.status = status;
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

constexpr unsigned kJoinThreads = 512;

struct JoinShared {
  std::uint64_t first[kJoinThreads / kLanes];
};

/// What the segments of a call's streams came to. Null: nothing was read.
struct SegmentOutcomes {
  const std::uint32_t* damaged = nullptr;  ///< by slot
  const kernels::MaskDamage* masks = nullptr;
};

/// Whether the codec refused a chunk of the segment.
__device__ __forceinline__ bool has_damage(const DeviceStream& stream, const std::uint32_t* damaged, std::uint64_t s) {
  const std::uint64_t segment = stream.first_segment + s;
  const std::uint64_t count = stream.layout.segment_chunks(segment);
  const std::uint64_t first = stream.layout.first_chunk(segment) - stream.layout.first_chunk(stream.first_segment);
  for (std::uint64_t k = 0; k < count; ++k)
    if (damaged[first + k] != 0) return true;
  return false;
}

/// A CTA for each stream: the first segment that failed.
__device__ __forceinline__ void join_segments(const StreamTables& tables, const SegmentOutcomes& outcomes,
                                              DeviceStream& stream, JoinShared& shared) {
  const std::uint64_t base = std::uint64_t{blockIdx.x} * tables.segments;
  const std::uint32_t* const damaged = outcomes.damaged + std::uint64_t{blockIdx.x} * tables.slots;
  // Mostly there is none, and then no segment has to be asked for its own.
  std::uint32_t any = 0;
  const std::uint64_t chunks = chunks_of(stream);
  for (std::uint64_t c = threadIdx.x; c < chunks; c += kJoinThreads) any |= damaged[c];
  const bool refused = __syncthreads_or(any != 0 ? 1 : 0) != 0;
  constexpr std::uint64_t kNone = ~UINT64_C(0);
  std::uint64_t first = kNone;  // number and status of the first one that failed, as one number
  for (std::uint64_t s = threadIdx.x; s < stream.segments && first == kNone; s += kJoinThreads) {
    StatusCode status = tables.segment_records[base + s].status;
    if (status == StatusCode::ok && outcomes.masks != nullptr) status = code_of(outcomes.masks[base + s]);
    if (status == StatusCode::ok && refused && has_damage(stream, damaged, s)) status = StatusCode::corrupt;
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

__global__ void __launch_bounds__(kJoinThreads)
    join_statuses(const __grid_constant__ StreamTables tables, const __grid_constant__ SegmentOutcomes outcomes) {
  DeviceStream& stream = tables.streams[blockIdx.x];
  if (stream.status == StatusCode::ok) join_segments(tables, outcomes, stream, kernels::shared_memory<JoinShared>());
}

__global__ void __launch_bounds__(kJoinThreads)
    tell_outcomes(const __grid_constant__ StreamTables tables, const __grid_constant__ SegmentOutcomes segments,
                  const __grid_constant__ DeviceArrays arrays, std::uint64_t bytes, DeviceOutcome* outcomes) {
  DeviceStream& stream = tables.streams[blockIdx.x];
  if (stream.status == StatusCode::ok && segments.damaged != nullptr)
    join_segments(tables, segments, stream, kernels::shared_memory<JoinShared>());
  if (threadIdx.x == 0) tell(arrays, blockIdx.x, stream.status, bytes, outcomes);
}

}  // namespace

cudaError_t read_trailers_async(const StreamTables& tables, std::uint64_t mask_bytes, cudaStream_t queue) {
  return kernels::launch(&read_trailers, {tables.count, kLanes}, queue, tables, mask_bytes);
}

cudaError_t join_statuses_async(const StreamTables& tables, const std::uint32_t* damaged,
                                const kernels::MaskDamage* masks, cudaStream_t queue) {
  if (tables.count == 0) return cudaSuccess;
  return kernels::launch(&join_statuses, {tables.count, kJoinThreads, sizeof(JoinShared)}, queue, tables,
                         SegmentOutcomes{damaged, masks});
}

cudaError_t tell_outcomes_async(const StreamTables& tables, const std::uint32_t* damaged,
                                const kernels::MaskDamage* masks, const DeviceArrays& arrays, std::uint64_t bytes,
                                DeviceOutcome* outcomes, cudaStream_t queue) {
  return kernels::launch(&tell_outcomes, {tables.count, kJoinThreads, sizeof(JoinShared)}, queue, tables,
                         SegmentOutcomes{damaged, masks}, arrays, bytes, outcomes);
}

}  // namespace quern::cuda

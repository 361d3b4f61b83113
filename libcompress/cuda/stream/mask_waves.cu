// Segments with special values, a warp or a thread for each.
#include "libcompress/cuda/stream/mask_waves.cuh"

#include "kernels/common/cuda/launch.cuh"
#include "libcompress/cuda/stream/segment_boxes.cuh"

namespace quern::cuda {
namespace {

using kernels::kLanes;
using kernels::WarpLanes;

constexpr unsigned kThreads = 64;

unsigned blocks_for(std::uint64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

/// What the encoder saw of a segment's chunks; the same in all lanes.
__device__ __forceinline__ kernels::SegmentScan scan_of(const kernels::ChunkScan* chunks, std::uint64_t count) {
  kernels::SegmentScan sum;
  for (std::uint64_t k = WarpLanes::lane(); k < count; k += kLanes) {
    sum.mandatory |= chunks[k].mandatory;
    sum.negative_zeros += chunks[k].negative_zeros;
    sum.equal_pairs += chunks[k].equal_pairs;
  }
  return {WarpLanes::reduce_or(sum.mandatory), WarpLanes::reduce_add(sum.negative_zeros),
          WarpLanes::reduce_add(sum.equal_pairs)};
}

/// Called by a warp: the wave's slot k takes the segment at a place of the tables.
__device__ __forceinline__ void lay_out_job(const StreamTables& tables, const StreamPlan* plans,
                                            const kernels::SegmentScan& scan, const MaskWave& wave, std::uint32_t k,
                                            std::uint32_t place) {
  const WarpSegment s = segment_at(tables, place);
  const auto* const from = reinterpret_cast<const std::uint64_t*>(s.stream->codec_state);
  auto* const to = reinterpret_cast<std::uint64_t*>(wave.streams[k].codec_state);
  for (unsigned i = WarpLanes::lane(); i < kCodecStateBytes / sizeof(std::uint64_t); i += kLanes) to[i] = from[i];
  if (WarpLanes::lane() != 0) return;
  kernels::MaskJob job;
  place_segment(s, job);
  for (unsigned a = 0; a < 3; ++a) job.chunk[a] = static_cast<std::uint32_t>(s.stream->layout.grid().chunk[a]);
  job.rules = &plans[s.stream - tables.streams].mask;
  job.scan = scan;
  job.stored = wave.stored + first_slot(tables, s) * wave.slot_bytes;
  job.copy = wave.copies + k * wave.copy_bytes;
  job.info = wave.infos + k;
  wave.jobs[k] = job;
  kernels::MaskSlotInfo info;
  info.segment = place;
  wave.infos[k] = info;
}

/// A warp for each segment.
__global__ void __launch_bounds__(kSegmentWarps* kLanes)
    list_masked(const __grid_constant__ StreamTables tables, const StreamPlan* plans,
                const __grid_constant__ MaskList list, const __grid_constant__ MaskWave wave) {
  const WarpSegment s = segment_of_warp(tables);
  if (s.stream == nullptr || s.stream->status != StatusCode::ok) return;
  const SegmentLayout& layout = s.stream->layout;
  const kernels::SegmentScan scan = scan_of(list.chunk_scans + first_slot(tables, s), layout.segment_chunks(s.number));
  const kernels::ScanCounts counts = scan.counts();
  const kernels::RepeatedRules& rules = plans[s.stream - tables.streams].mask.repeated;
  const std::uint64_t cells = layout.segment_box(s.number).elems();
  if (!counts.any_mandatory && !kernels::may_have_repeated(rules, counts, cells)) return;
  const auto place = static_cast<std::uint32_t>(s.record - tables.segment_records);
  std::uint32_t k = 0;
  if (WarpLanes::lane() == 0) {
    k = atomicAdd(list.count, 1u);
    list.scans[place] = scan;
    list.places[k] = place;
  }
  k = WarpLanes::broadcast(k, 0);
  if (k < wave.slots) lay_out_job(tables, plans, scan, wave, k, place);
}

/// Chunk k of a segment in its copy without gaps.
__device__ __forceinline__ kernels::CudaChunk chunk_in_copy(const WarpSegment& s, std::uint64_t k, std::uint8_t* copy,
                                                            std::uint64_t slot) {
  const SegmentLayout& layout = s.stream->layout;
  const GridBox whole = layout.segment_box(s.number);
  const GridBox box = layout.chunk_box(s.number, k);
  kernels::CudaChunk chunk;
  chunk.box = {box.extents, {whole.extents[1] * whole.extents[2], whole.extents[2]}};
  const std::uint64_t first = (box.begin[0] - whole.begin[0]) * chunk.box.strides[0] +
                              (box.begin[1] - whole.begin[1]) * chunk.box.strides[1] + box.begin[2] - whole.begin[2];
  chunk.values = copy + first * dtype_bytes(layout.dtype());
  chunk.slot = static_cast<std::uint32_t>(slot);
  return chunk;
}

/// Called by a warp: what became of slot k's segment.
__device__ __forceinline__ void take_mask(const StreamTables& tables, const MaskWave& wave, std::uint32_t k) {
  const kernels::MaskSlotInfo info = wave.infos[k];
  if (info.masked == 0) return;
  const WarpSegment s = segment_at(tables, info.segment);
  const std::uint64_t count = s.stream->layout.segment_chunks(s.number);
  const std::uint64_t raw = s.stream->layout.segment_box(s.number).elems() * dtype_bytes(s.stream->layout.dtype());
  if (WarpLanes::lane() == 0) {
    s.record->mask = wave.stored + first_slot(tables, s) * wave.slot_bytes;
    // One that is larger than the values does not pay, and settle_segments drops it.
    s.record->mask_bytes = static_cast<std::uint32_t>(info.stored_bytes <= raw ? info.stored_bytes : raw + 1);
  }
  for (std::uint64_t c = WarpLanes::lane(); c < count; c += kLanes) {
    const bool whole = (info.masked_chunks >> c & 1) != 0;
    s.chunks[c].all_masked = whole;
    if (whole || info.stored_bytes > raw) continue;
    const std::uint64_t place = std::uint64_t{k} * wave.chunks + c;
    wave.boxes[place] = chunk_in_copy(s, c, wave.copies + k * wave.copy_bytes, first_slot(tables, s) + c);
    wave.again[atomicAdd(wave.counts + wave.number, 1u)] = static_cast<std::uint32_t>(place);
  }
}

/// A warp for each slot.
__global__ void __launch_bounds__(kThreads)
    take_masks(const __grid_constant__ StreamTables tables, const StreamPlan* plans,
               const __grid_constant__ MaskList list, const __grid_constant__ MaskWave wave) {
  const std::uint32_t k = (blockIdx.x * kThreads + threadIdx.x) / kLanes;
  if (k >= wave.slots) return;
  const std::uint32_t listed = *list.count;
  if (wave.first() + std::uint64_t{k} < listed) {
    take_mask(tables, wave, k);
  } else if (WarpLanes::lane() == 0) {
    wave.infos[k] = {};
  }
  const std::uint64_t next = wave.first() + std::uint64_t{wave.slots} + k;
  if (next >= listed) return;
  __syncwarp();  // the slot is free
  const std::uint32_t place = list.places[next];
  lay_out_job(tables, plans, list.scans[place], wave, k, place);
}

}  // namespace

cudaError_t list_masked_async(const StreamTables& tables, const StreamPlan* plans, const MaskList& list,
                              const MaskWave& wave, cudaStream_t queue) {
  return kernels::launch(&list_masked, {segment_blocks(tables), kSegmentWarps * kLanes}, queue, tables, plans, list,
                         wave);
}

cudaError_t take_masks_async(const StreamTables& tables, const StreamPlan* plans, const MaskList& list,
                             const MaskWave& wave, cudaStream_t queue) {
  return kernels::launch(&take_masks, {blocks_for(std::uint64_t{wave.slots} * kLanes), kThreads}, queue, tables, plans,
                         list, wave);
}

}  // namespace quern::cuda

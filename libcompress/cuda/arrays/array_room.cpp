// Parts in the order in which they are first used.
#include "libcompress/cuda/arrays/array_room.h"

#include <algorithm>

namespace quern::cuda {
namespace {

kernels::MaskWorkers workers_for(std::uint64_t bytes_per_warp, std::uint64_t segments, std::uint64_t most) {
  kernels::MaskWorkers workers;
  workers.warps = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(segments, 1, most));
  workers.bytes_per_warp = bytes_per_warp;
  return workers;
}

}  // namespace

LayoutLimits::LayoutLimits(std::span<const SegmentLayout> layouts, std::size_t coded, bool by_levels)
    : mask_levels(by_levels) {
  for (const SegmentLayout& layout : layouts) {
    if (layout.segments() == 0) continue;
    const Index3 e = layout.segment_box(0).extents;
    const std::uint64_t bytes = layout.max_segment_elems() * dtype_bytes(layout.dtype());
    segments = std::max(segments, layout.segments());
    chunks_per_segment = std::max(chunks_per_segment, layout.segment_chunks(0));
    chunks = std::max(chunks, layout.chunks());
    if (&layout < layouts.data() + coded) coded_chunks = std::max(coded_chunks, layout.chunks());
    chunk_bytes = std::max(chunk_bytes, layout.full_chunk_bytes());
    segment_bytes = std::max(segment_bytes, bytes);
    served = served && kernels::mask_cuda_serves(e) && bytes < UINT64_C(1) << 31;
    if (!served) continue;
    mask_bytes = std::max(mask_bytes, kernels::MaskWorkers(e, 1, by_levels).bytes_per_warp);
    restore_bytes = std::max(restore_bytes, kernels::MaskWorkers::restoring(e, 1, true).bytes_per_warp);
  }
}

TableShape LayoutLimits::shape(std::uint32_t streams) const {
  return {streams, static_cast<std::uint32_t>(segments), static_cast<std::uint32_t>(chunks_per_segment),
          static_cast<std::uint32_t>(chunks), static_cast<std::uint32_t>(coded_chunks)};
}

bool LayoutLimits::fits(std::uint32_t streams) const {
  const auto places = checked_multiply(segments * std::max<std::uint64_t>(chunks_per_segment, 1), streams);
  return served && segments <= kMaxChunkPlaces && places && *places <= kMaxChunkPlaces;
}

ArrayRoom::ArrayRoom(const LayoutLimits& limits, std::uint32_t streams)
    : outcomes(workspace.add<DeviceOutcome>(streams)),
      tables(limits.shape(streams), workspace),
      plans(workspace.add<StreamPlan>(streams)) {}

CompressRoom::CompressRoom(const LayoutLimits& limits, std::uint32_t streams, std::uint64_t planning_bytes,
                           const ChunkKernels& kernels, DType dtype, BoundKind bound)
    : ArrayRoom(limits, streams),
      slot_bytes(aligned_part(limits.chunk_bytes)),
      ranges(workspace.add<kernels::RangeKeys>(streams)),
      planning(workspace.add<std::uint8_t>(planning_bytes)) {
  const std::uint64_t all_slots = std::uint64_t{streams} * tables.shape.slots;
  const auto wave = static_cast<std::uint32_t>(std::min(tables.shape.segment_places(), kWaveSegments));
  sizes = workspace.add<std::uint32_t>(all_slots);
  parts_bytes = kernels.parts_bytes(dtype, bound, all_slots);
  parts = workspace.add<std::uint8_t>(parts_bytes);
  targets = workspace.add<std::uint8_t*>(parts_bytes == 0 ? 0 : all_slots);
  kernels::MaskWorkers workers = workers_for(limits.mask_bytes, wave, kWaveSegments);
  workers.by_levels = limits.mask_levels;
  masks = MaskWaveRoom(tables.shape, wave, workers, limits.segment_bytes, slot_bytes, workspace);
  slots = workspace.add<std::uint8_t>(all_slots * slot_bytes);
}

DecompressRoom::DecompressRoom(const LayoutLimits& limits, std::uint32_t streams, const ChunkKernels& kernels,
                               DType dtype)
    : ArrayRoom(limits, streams),
      workers(workers_for(limits.restore_bytes, tables.shape.segment_places(), kRestoringWarps)),
      stored(workspace.add<kernels::StoredChunk>(tables.shape.slot_places())),
      damaged(workspace.add<std::uint32_t>(tables.shape.slot_places())),
      jobs(workspace.add<kernels::RestoreJob>(tables.shape.segment_places())),
      mask_damage(workspace.add<kernels::MaskDamage>(tables.shape.segment_places())),
      warps(workspace.add<std::uint8_t>(workers.workspace_bytes())),
      decoding(workspace.add<std::uint8_t>(
          kernels.decode_workspace_bytes(dtype, streams, tables.shape.slots, tables.shape.coded))) {}

FaultRoom::FaultRoom(const LayoutLimits& limits, std::uint32_t streams, const ChunkKernels& kernels, DType dtype,
                     std::uint64_t array_bytes)
    : DecompressRoom(limits, streams, kernels, dtype),
      stride(aligned_part(array_bytes)),
      decoded(workspace.add<std::uint8_t>(streams * stride)),
      arrays(workspace.add<void*>(streams)),
      sizes(workspace.add<std::uint64_t>(streams)),
      faults(workspace.add<std::uint32_t>(streams)) {}

}  // namespace quern::cuda

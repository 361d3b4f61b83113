// The list of segments that call for a mask, and the host functions.
#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mask_launches.cuh"
#include "kernels/cuda/warp_lanes.cuh"

namespace quern::kernels {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::uint64_t kMostSegments = 0x7fffffffu;
constexpr std::uint64_t kMostChunks = 64;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// One warp: scans are a hundred-thousandth of what they were made from.
__global__ void __launch_bounds__(kLanes)
    list_segments(const __grid_constant__ RepeatedRules rules, const __grid_constant__ SegmentGrid grid,
                  const SegmentScan* scans, std::uint32_t* list, std::uint32_t* listed) {
  const auto segments = static_cast<std::uint32_t>(grid.segments());
  const std::uint32_t lane = WarpLanes::lane();
  std::uint32_t count = 0;
  for (std::uint32_t begin = 0; begin < segments; begin += kLanes) {
    const std::uint32_t own = begin + lane;
    bool wanted = false;
    if (own < segments) {
      const ScanCounts counts = scans[own].counts();
      const std::uint64_t cells = lane_segment<const std::uint8_t>(grid, nullptr, own).elems();
      wanted = counts.any_mandatory || may_have_repeated(rules, counts, cells);
    }
    const std::uint32_t all = WarpLanes::ballot(wanted);
    if (wanted) list[count + static_cast<std::uint32_t>(__popc(all & first_lanes(lane)))] = own;
    count += static_cast<std::uint32_t>(__popc(all));
  }
  if (lane == 0) *listed = count;
}

/// Parts of the workspace.
MaskScratch plan_scratch(const SegmentGrid& grid, void* workspace) {
  MaskScratch scratch;
  scratch.layout = LaneMaskLayout(grid.segment_extents());
  scratch.bytes_per_warp = aligned(scratch.layout.bytes());
  scratch.counter = static_cast<std::uint32_t*>(workspace);
  scratch.memory = static_cast<std::uint8_t*>(workspace) + kAlignment;
  return scratch;
}

std::size_t workspace_bytes_of(const SegmentGrid& grid, std::uint32_t warps) {
  return kAlignment + std::size_t{warps} * aligned(LaneMaskLayout(grid.segment_extents()).bytes());
}

}  // namespace

bool mask_cuda_serves(Element element, const SegmentGrid& grid) {
  const auto number = static_cast<unsigned>(element);
  const bool known = (number >= 1 && number <= 4) || (number >= 8 && number <= 11) || (number >= 16 && number <= 19);
  if (!known) return false;
  for (std::size_t a = 0; a < 3; ++a) {
    if (grid.chunk[a] == 0 || grid.per_segment[a] == 0 || grid.per_segment[a] > kMostChunks ||
        grid.chunk[a] > kMaxLaneCells) {
      return false;
    }
  }
  const SegmentExtents e = grid.segment_extents();
  const std::uint64_t plane = e[1] * e[2];  // each below 2^38
  return grid.per_segment[0] * grid.per_segment[1] * grid.per_segment[2] <= kMostChunks && e[1] <= kMaxLaneCells &&
         e[2] <= kMaxLaneCells && plane <= kMaxLaneCells && (plane == 0 || e[0] <= kMaxLaneCells / plane) &&
         grid.segments() <= kMostSegments;
}

std::size_t mask_slot_bytes(Element element, const SegmentGrid& grid) {
  const SegmentExtents e = grid.segment_extents();
  return aligned(e[0] * e[1] * e[2] * element_bytes(element));
}

cudaError_t mask_scan_async(const LaneMaskRules& rules, const SegmentGrid& grid, const void* in, SegmentScan* scans,
                            cudaStream_t stream) {
  if (!mask_cuda_serves(rules.element, grid) || rules.fill_count > kMaxFillWords) return cudaErrorInvalidValue;
  if (grid.segments() == 0) return cudaSuccess;
  const cudaError_t error = cudaMemsetAsync(scans, 0, grid.segments() * sizeof(SegmentScan), stream);
  if (error != cudaSuccess) return error;
  return mask_launches(rules.element).scan(rules, grid, in, scans, stream);
}

cudaError_t mask_list_async(const LaneMaskRules& rules, const SegmentGrid& grid, const SegmentScan* scans,
                            std::uint32_t* list, std::uint32_t* listed, cudaStream_t stream) {
  if (!mask_cuda_serves(rules.element, grid)) return cudaErrorInvalidValue;
  return launch(&list_segments, {1, kLanes}, stream, rules.repeated, grid, scans, list, listed);
}

cudaError_t mask_workspace(Element element, const SegmentGrid& grid, std::uint32_t warps, std::size_t& bytes) {
  if (!mask_cuda_serves(element, grid) || warps == 0) return cudaErrorInvalidValue;
  bytes = workspace_bytes_of(grid, warps);
  return cudaSuccess;
}

cudaError_t mask_encode_async(const LaneMaskRules& rules, const SegmentGrid& grid, const void* in,
                              const SegmentScan* scans, const std::uint32_t* list, const std::uint32_t* listed,
                              std::uint32_t first, const MaskSlots& slots, std::uint32_t warps, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  if (!mask_cuda_serves(rules.element, grid) || rules.fill_count > kMaxFillWords || warps == 0 ||
      workspace_bytes < workspace_bytes_of(grid, warps)) {
    return cudaErrorInvalidValue;
  }
  if (slots.count == 0) return cudaSuccess;
  const MaskScratch scratch = plan_scratch(grid, workspace);
  const MaskTurn turn{scans, list, listed, first, mask_slot_bytes(rules.element, grid)};
  const cudaError_t error = cudaMemsetAsync(scratch.counter, 0, sizeof *scratch.counter, stream);
  if (error != cudaSuccess) return error;
  return mask_launches(rules.element)
      .encode(rules, grid, in, turn, slots, scratch, std::min(warps, slots.count), stream);
}

cudaError_t mask_decode_async(Element element, const SegmentGrid& grid, const std::uint8_t* in, std::uint64_t bytes,
                              const StoredMask* masks, std::uint32_t count, void* out, MaskDamage* damage,
                              std::uint32_t warps, void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  if (!mask_cuda_serves(element, grid) || warps == 0 || workspace_bytes < workspace_bytes_of(grid, warps)) {
    return cudaErrorInvalidValue;
  }
  if (count == 0) return cudaSuccess;
  const MaskScratch scratch = plan_scratch(grid, workspace);
  const cudaError_t error = cudaMemsetAsync(scratch.counter, 0, sizeof *scratch.counter, stream);
  if (error != cudaSuccess) return error;
  return mask_launches(element).decode(grid, in, bytes, masks, count, out, damage, scratch, std::min(warps, count),
                                       stream);
}

}  // namespace quern::kernels

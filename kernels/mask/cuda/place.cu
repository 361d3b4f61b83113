// Jobs for the segments of one array that call for a mask, and the host functions.
#include <algorithm>
#include <span>

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/mask/cuda/launches.cuh"

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

constexpr unsigned kJobThreads = 64;

template <class Job, class Word>
__device__ __forceinline__ void place_job(const LaneSegment<Word>& segment, Job& job) {
  for (unsigned a = 0; a < 3; ++a) job.extents[a] = segment.extents[a];
  for (unsigned a = 0; a < 2; ++a) job.strides[a] = segment.strides[a];
}

/// What mask_encode_async was told.
struct ListedSegments {
  const std::uint8_t* in = nullptr;
  const SegmentScan* scans = nullptr;
  const std::uint32_t* list = nullptr;
  const std::uint32_t* listed = nullptr;
  std::uint32_t first = 0;
  std::uint64_t slot_bytes = 0;
};

/// A thread a slot.
__global__ void __launch_bounds__(kJobThreads)
    make_mask_jobs(const __grid_constant__ LaneMaskRules rules, const __grid_constant__ SegmentGrid grid,
                   const __grid_constant__ ListedSegments from, const __grid_constant__ MaskSlots slots, MaskJob* jobs,
                   LaneMaskRules* shared_rules) {
  const std::uint32_t k = blockIdx.x * kJobThreads + threadIdx.x;
  if (k == 0) *shared_rules = rules;
  if (k >= slots.count) return;
  MaskJob job;
  MaskSlotInfo info;
  if (from.first + std::uint64_t{k} < *from.listed) {
    info.segment = from.list[from.first + k];
    // Of bytes in place of elements: its first one tells how many elements lie before.
    const auto segment = lane_segment(grid, from.in, info.segment);
    place_job(segment, job);
    job.values = from.in + static_cast<std::uint64_t>(segment.cells - from.in) * element_bytes(rules.element);
    for (unsigned a = 0; a < 3; ++a) job.chunk[a] = static_cast<std::uint32_t>(grid.chunk[a]);
    job.rules = shared_rules;
    job.scan = from.scans[info.segment];
    job.stored = slots.stored + k * from.slot_bytes;
    job.copy = static_cast<std::uint8_t*>(slots.copies) + k * from.slot_bytes;
    job.info = slots.infos + k;
  }
  slots.infos[k] = info;
  jobs[k] = job;
}

/// A thread a mask, which may name anything.
__global__ void __launch_bounds__(kJobThreads)
    make_restore_jobs(Element element, const __grid_constant__ SegmentGrid grid, std::span<const std::uint8_t> in,
                      const StoredMask* masks, std::uint32_t count, bool may_be_levels, std::uint8_t* out,
                      MaskDamage* damage, RestoreJob* jobs) {
  const std::uint32_t k = blockIdx.x * kJobThreads + threadIdx.x;
  if (k >= count) return;
  const StoredMask mask = masks[k];
  RestoreJob job;
  damage[k] = mask.bytes == 0 ? MaskDamage::none : MaskDamage::corrupt;
  if (mask.bytes != 0 && mask.segment < grid.segments() && mask.offset <= in.size() &&
      mask.bytes <= in.size() - mask.offset) {
    const auto segment = lane_segment(grid, out, mask.segment);
    place_job(segment, job);
    job.values = out + static_cast<std::uint64_t>(segment.cells - out) * element_bytes(element);
    job.stored = in.data() + mask.offset;
    job.bytes = mask.bytes;
    job.damage = damage + k;
    job.may_be_levels = may_be_levels;
  }
  jobs[k] = job;
}

/// Warps and jobs in one workspace: the warps' part, rules, jobs.
struct JobRoom {
  MaskWorkers workers;
  std::size_t rules_at = 0;
  std::size_t jobs_at = 0;
  std::size_t bytes = 0;

  JobRoom(const SegmentGrid& grid, std::uint32_t warps, std::uint32_t jobs, bool by_levels)
      : workers(grid.segment_extents(), warps, by_levels),
        rules_at(workers.workspace_bytes()),
        jobs_at(rules_at + aligned(sizeof(LaneMaskRules))),
        bytes(jobs_at + aligned(jobs * std::max(sizeof(MaskJob), sizeof(RestoreJob)))) {}
  template <class T>
  static T* at(void* workspace, std::size_t offset) {
    return reinterpret_cast<T*>(static_cast<std::uint8_t*>(workspace) + offset);
  }
};

unsigned job_blocks(std::uint32_t jobs) { return (jobs + kJobThreads - 1) / kJobThreads; }

/// Calls launch(launches, scratch, warps) for `count` pieces of work.
template <class Launch>
cudaError_t run_workers(Element element, std::uint32_t count, const MaskWorkers& workers, void* workspace,
                        Launch&& launch) {
  if (!is_element(element) || workers.warps == 0) return cudaErrorInvalidValue;
  if (count == 0) return cudaSuccess;
  MaskScratch scratch;
  scratch.memory = static_cast<std::uint8_t*>(workspace);
  scratch.bytes_per_warp = workers.bytes_per_warp;
  return launch(mask_launches(element), scratch, std::min(workers.warps, count));
}

}  // namespace

bool mask_cuda_serves(const SegmentExtents& e) {
  const std::uint64_t plane = e[1] <= kMaxLaneCells && e[2] <= kMaxLaneCells ? e[1] * e[2] : kMaxLaneCells + 1;
  return plane <= kMaxLaneCells && (plane == 0 || e[0] <= kMaxLaneCells / plane);
}

bool mask_cuda_serves(Element element, const SegmentGrid& grid) {
  for (std::size_t a = 0; a < 3; ++a) {
    if (grid.chunk[a] == 0 || grid.per_segment[a] == 0 || grid.per_segment[a] > kMostChunks ||
        grid.chunk[a] > kMaxLaneCells) {
      return false;
    }
  }
  return is_element(element) && grid.per_segment[0] * grid.per_segment[1] * grid.per_segment[2] <= kMostChunks &&
         mask_cuda_serves(grid.segment_extents()) && grid.segments() <= kMostSegments;
}

MaskWorkers::MaskWorkers(const SegmentExtents& largest, std::uint32_t count, bool levels)
    : warps(count),
      bytes_per_warp(aligned(levels ? LaneLevelMaskLayout(largest).bytes() : LaneMaskLayout(largest).bytes())),
      by_levels(levels) {}

MaskWorkers MaskWorkers::cleaning(const SegmentExtents& largest, std::uint32_t count) {
  MaskWorkers workers;
  workers.warps = count;
  workers.bytes_per_warp = aligned(LaneMaskLayout(largest, true).bytes());
  return workers;
}

MaskWorkers MaskWorkers::restoring(const SegmentExtents& largest, std::uint32_t count, bool may_be_levels) {
  MaskWorkers workers;
  workers.warps = count;
  workers.bytes_per_warp = aligned(restoring_bytes(largest, may_be_levels));
  return workers;
}

std::uint64_t MaskWorkers::workspace_bytes() const { return warps * bytes_per_warp; }

cudaError_t mask_jobs_async(Element element, const MaskJobs& jobs, const MaskWorkers& workers, void* workspace,
                            cudaStream_t stream) {
  return run_workers(element, jobs.count, workers, workspace,
                     [&](const MaskLaunches& launches, const MaskScratch& scratch, std::uint32_t warps) {
                       return (workers.by_levels ? launches.encode_levels : launches.encode)(jobs, scratch, warps,
                                                                                             stream);
                     });
}

cudaError_t restore_jobs_async(Element element, const RestoreJob* jobs, std::uint32_t count, bool may_be_levels,
                               const MaskWorkers& workers, void* workspace, cudaStream_t stream) {
  return run_workers(element, count, workers, workspace,
                     [&](const MaskLaunches& launches, const MaskScratch& scratch, std::uint32_t warps) {
                       const cudaError_t error = launches.decode(jobs, count, scratch, warps, stream);
                       if (error != cudaSuccess || !may_be_levels) return error;
                       return launch_restore_level_masks(jobs, count, element_bytes(element), scratch, warps, stream);
                     });
}

cudaError_t clean_boxes_async(Element element, const SampleBoxes& boxes, const MaskWorkers& workers, void* workspace,
                              cudaStream_t stream) {
  return run_workers(element, boxes.count, workers, workspace,
                     [&](const MaskLaunches& launches, const MaskScratch& scratch, std::uint32_t warps) {
                       return launches.clean(boxes, scratch, warps, stream);
                     });
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

cudaError_t mask_workspace(Element element, const SegmentGrid& grid, std::uint32_t warps, std::uint32_t jobs,
                           bool by_levels, std::size_t& bytes) {
  if (!mask_cuda_serves(element, grid) || warps == 0) return cudaErrorInvalidValue;
  bytes = JobRoom(grid, warps, jobs, by_levels).bytes;
  return cudaSuccess;
}

cudaError_t mask_encode_async(const LaneMaskRules& rules, const SegmentGrid& grid, const void* in,
                              const SegmentScan* scans, const std::uint32_t* list, const std::uint32_t* listed,
                              std::uint32_t first, const MaskSlots& slots, std::uint32_t warps, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  if (!mask_cuda_serves(rules.element, grid) || rules.fill_count > kMaxFillWords || warps == 0)
    return cudaErrorInvalidValue;
  const JobRoom room(grid, warps, slots.count, rules.by_levels);
  if (workspace_bytes < room.bytes) return cudaErrorInvalidValue;
  if (slots.count == 0) return cudaSuccess;
  const ListedSegments from{static_cast<const std::uint8_t*>(in), scans, list, listed, first,
                            mask_slot_bytes(rules.element, grid)};
  auto* const jobs = JobRoom::at<MaskJob>(workspace, room.jobs_at);
  const cudaError_t error = launch(&make_mask_jobs, {job_blocks(slots.count), kJobThreads}, stream, rules, grid, from,
                                   slots, jobs, JobRoom::at<LaneMaskRules>(workspace, room.rules_at));
  if (error != cudaSuccess) return error;
  return mask_jobs_async(rules.element, {jobs, slots.count}, room.workers, workspace, stream);
}

cudaError_t mask_decode_async(Element element, const SegmentGrid& grid, const std::uint8_t* in, std::uint64_t bytes,
                              const StoredMask* masks, std::uint32_t count, bool may_be_levels, void* out,
                              MaskDamage* damage, std::uint32_t warps, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream) {
  if (!mask_cuda_serves(element, grid) || warps == 0) return cudaErrorInvalidValue;
  const JobRoom room(grid, warps, count, may_be_levels);
  if (workspace_bytes < room.bytes) return cudaErrorInvalidValue;
  if (count == 0) return cudaSuccess;
  auto* const jobs = JobRoom::at<RestoreJob>(workspace, room.jobs_at);
  const std::span<const std::uint8_t> stored(in, static_cast<std::size_t>(bytes));
  const cudaError_t error = launch(&make_restore_jobs, {job_blocks(count), kJobThreads}, stream, element, grid, stored,
                                   masks, count, may_be_levels, static_cast<std::uint8_t*>(out), damage, jobs);
  if (error != cudaSuccess) return error;
  return restore_jobs_async(element, jobs, count, may_be_levels, room.workers, workspace, stream);
}

}  // namespace quern::kernels

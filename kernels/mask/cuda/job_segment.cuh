// The segment of a mask job, and which kernel restores it.
#pragma once

#include "kernels/mask/cuda/entry_points.h"

namespace quern::kernels {

/// The segment of a job.
template <class Word, class Job>
__device__ __forceinline__ LaneSegment<Word> segment_of_job(const Job& job) {
  LaneSegment<Word> segment;
  segment.cells = static_cast<Word*>(job.values);
  for (unsigned a = 0; a < 3; ++a) segment.extents[a] = job.extents[a];
  for (unsigned a = 0; a < 2; ++a) segment.strides[a] = job.strides[a];
  return segment;
}

/// Whether the mask is coded by levels.
__device__ __forceinline__ bool is_level_job(const RestoreJob& job) {
  if (!job.may_be_levels) return false;
  const MaskPlanes planes(SegmentExtents{job.extents[0], job.extents[1], job.extents[2]});
  return read_view(job.stored, job.bytes, planes, true).by_levels;
}

}  // namespace quern::kernels

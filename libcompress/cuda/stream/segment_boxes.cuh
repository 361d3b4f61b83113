// Where segments and their chunks lie in a stream's window.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/chunk.h"
#include "kernels/mask/scan.h"
#include "libcompress/cuda/stream/warp_segment.cuh"

namespace quern::cuda {

/// Chunk k of the stream's segment `local`, which has that slot.
__device__ __forceinline__ kernels::CudaChunk chunk_in_window(const DeviceStream& stream, std::uint64_t local,
                                                              std::uint64_t k, std::uint64_t slot) {
  kernels::CudaChunk chunk;
  const SegmentLayout& layout = stream.layout;
  const std::uint64_t segment = stream.first_segment + local;
  const GridBox box = layout.chunk_box(segment, k);
  const auto& extents = layout.grid().extents;
  chunk.values = stream.window + (layout.flat(box.begin) - stream.window_begin) * dtype_bytes(layout.dtype());
  chunk.box = {box.extents, {extents[1] * extents[2], extents[2]}};
  const GridBox whole = layout.segment_box(segment);
  const std::uint64_t row = box.begin[1] - whole.begin[1];
  const std::uint64_t column = box.begin[2] - whole.begin[2];
  chunk.phase = static_cast<std::uint32_t>((row + column / kernels::kPairPiece) % kernels::kPairPieceEvery);
  chunk.slot = static_cast<std::uint32_t>(slot);
  return chunk;
}

/// A segment as a MaskJob's and a RestoreJob's part.
template <class Job>
__device__ __forceinline__ void place_segment(const WarpSegment& s, Job& job) {
  const SegmentLayout& layout = s.stream->layout;
  const GridBox box = layout.segment_box(s.number);
  job.values = s.stream->window + (layout.flat(box.begin) - s.stream->window_begin) * dtype_bytes(layout.dtype());
  for (unsigned a = 0; a < 3; ++a) job.extents[a] = static_cast<std::uint32_t>(box.extents[a]);
  job.strides[0] = layout.grid().extents[1] * layout.grid().extents[2];
  job.strides[1] = layout.grid().extents[2];
}

}  // namespace quern::cuda

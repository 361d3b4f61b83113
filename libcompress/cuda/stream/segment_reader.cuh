// Kernels that take segments apart: every size and checksum is checked before a byte of a chunk is looked at. The twin
// of parse_segment() in libcompress/format.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/cuda/chunk.h"
#include "kernels/mask/cuda/entry_points.h"
#include "libcompress/cuda/stream/stream_tables.h"

namespace quern::cuda {

/// What is known of segments once they are read: boxes and bytes by slot, masks by place of the segment.
struct ReadPlaces {
  kernels::CudaChunk* boxes = nullptr;
  kernels::StoredChunk* stored = nullptr;
  kernels::RestoreJob* restores = nullptr;
  kernels::MaskDamage* mask_damage = nullptr;
};

/// Queues the kernel that checks the segments whose SegmentRecord names offset and bytes (which may be anything) and
/// fills the records. boxes[s] becomes the part of the window of the chunk with slot s; it has no extents where no chunk
/// has the slot and in streams that have failed. stored[s] becomes what has to be decoded there, which is nothing in
/// segments that are damaged; SegmentRecord::status says so. Without a box it is left alone. In a stream with
/// DeviceStream::stored_only a coded chunk is damage. restores[p] becomes the job of the mask of the segment at place p
/// of the tables, one without extents where there is none, and mask_damage[p] none.
cudaError_t read_segments_async(const StreamTables& tables, const ReadPlaces& places, cudaStream_t queue);

}  // namespace quern::cuda

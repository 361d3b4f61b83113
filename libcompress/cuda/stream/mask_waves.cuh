// Masks of streams that are written on the device: which segments call for a mask, and those segments
// in waves of a few, each masked, copied without gaps and made ready to be coded again.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/mask/cuda/entry_points.h"
#include "libcompress/cuda/stream/stream_tables.h"
#include "libcompress/device/chunk_kernels.h"

namespace quern::cuda {

/// Segments that call for a mask, as places of the tables, in any order.
struct MaskList {
  std::uint32_t* places = nullptr;                  ///< room for all segments
  std::uint32_t* count = nullptr;                   ///< 0 before
  kernels::SegmentScan* scans = nullptr;            ///< of each place
  const kernels::ChunkScan* chunk_scans = nullptr;  ///< by slot
};

/// A wave of up to `slots` segments.
struct MaskWave {
  std::uint32_t number = 0;
  std::uint32_t slots = 0;
  std::uint32_t chunks = 0;          ///< of a segment, at most
  kernels::MaskJob* jobs = nullptr;  ///< one a slot
  kernels::MaskSlotInfo* infos = nullptr;
  DeviceStream* streams = nullptr;      ///< one a slot; only codec_state is used
  kernels::CudaChunk* boxes = nullptr;  ///< slots * chunks places: what has to be coded again
  std::uint32_t* again = nullptr;       ///< those of them that hold something, in any order
  std::uint32_t* counts = nullptr;      ///< how many, for each wave; 0 before
  std::uint8_t* copies = nullptr;       ///< copy_bytes for each slot
  std::uint64_t copy_bytes = 0;
  std::uint8_t* stored = nullptr;  ///< masks: slot_bytes for each slot of the tables
  std::uint64_t slot_bytes = 0;

  /// In the list.
  constexpr std::uint32_t first() const { return number * slots; }
};

/// Queues the kernel that makes the list, and jobs and streams of the first wave.
cudaError_t list_masked_async(const StreamTables& tables, const StreamPlan* plans, const MaskList& list,
                              const MaskWave& wave, cudaStream_t queue);
/// After the wave's jobs: queues the kernel that fills its boxes, and the masks in the records of segments and chunks;
/// the infos say what became of the jobs. Then it makes jobs and streams of the next wave.
cudaError_t take_masks_async(const StreamTables& tables, const StreamPlan* plans, const MaskList& list,
                             const MaskWave& wave, cudaStream_t queue);

}  // namespace quern::cuda

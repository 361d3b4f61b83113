// What an encoder's plan takes on a device: the same choice as choose() in plan.h, made where the array lies; and
// parameters read back.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "codecs/lorenzo/choose.h"
#include "codecs/lorenzo/rules.h"
#include "kernels/common/cuda/chunk.h"
#include "libcompress/device/chunk_kernels.h"

namespace quern::codec::lorenzo {

/// A layout and the sample tiles that tell what it would cost.
struct DeviceTrial {
  Layout layout;
  SegmentLayout segments;
  SampleTiles tiles;
};

/// The trials of some streams in device memory: stream i has the rules [i * count, ...), and trial t of it the places
/// [(i * count + t) * kSampleTiles, ...).
struct DeviceTrials {
  const DeviceTrial* at = nullptr;
  std::uint32_t count = 0;
  kernels::ChunkRules* rules = nullptr;
  kernels::CudaChunk* tiles = nullptr;
  std::uint32_t* costs = nullptr;  ///< of each tile under each predictor
  std::uint32_t* bytes = nullptr;  ///< of each tile under its trial's candidates
};

/// Queues the kernel that fills rules and tiles; there are none for streams that have failed.
cudaError_t lay_out_trials_async(const cuda::StreamPlaces& places, const DeviceTrials& trials, cudaStream_t queue);
/// Given costs, queues the kernel that fills in the candidates of all rules.
cudaError_t choose_candidates_async(const cuda::StreamPlaces& places, const DeviceTrials& trials, cudaStream_t queue);
/// Given clean tiles, and bytes of more than one trial, queues the kernel that chooses the steps of rules that have one
/// to choose (step.h) and fills in layout, codec state and parameters. Bytes of tiles are those under the former step.
cudaError_t settle_plans_async(const cuda::StreamPlaces& places, const DeviceTrials& trials, cudaStream_t queue);

/// Queues the kernel behind ChunkKernels::open.
cudaError_t open_streams_async(const cuda::StreamPlaces& places, cudaStream_t queue);

}  // namespace quern::codec::lorenzo

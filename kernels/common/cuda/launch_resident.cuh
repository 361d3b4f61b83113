// Launches of kernels whose CTAs share the work, however many there are.
#pragma once

#include <utility>

#include "kernels/common/cuda/launch.cuh"

namespace quern::kernels {

/// launch() with as many CTAs as the device holds at once, if those are fewer.
template <class... Parameters, class... Arguments>
cudaError_t launch_resident(void (*kernel)(Parameters...), const LaunchShape& most, cudaStream_t stream,
                            Arguments&&... arguments) {
  int device = 0;
  int processors = 0;
  int held = 0;
  cudaError_t error = cudaSuccess;
  if (most.shared_bytes > kUnaskedSharedBytes)
    error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most.shared_bytes));
  if (error == cudaSuccess) error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, kernel, static_cast<int>(most.threads), most.shared_bytes);
  if (error != cudaSuccess) return error;
  LaunchShape shape = most;
  const auto resident = static_cast<unsigned>(processors) * static_cast<unsigned>(held > 0 ? held : 1);
  if (shape.blocks > resident) shape.blocks = resident;
  return launch(kernel, shape, stream, std::forward<Arguments>(arguments)...);
}

}  // namespace quern::kernels

// The one way kernels are launched: plain C++, no <<<>>>, so that any compiler takes the sources.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

namespace quern::kernels {

/// Dynamic shared memory that a kernel may have without asking.
inline constexpr std::size_t kUnaskedSharedBytes = 48 * 1024;

/// One-dimensional: CTAs, threads of each (a multiple of 32), and bytes of dynamic shared memory of each.
struct LaunchShape {
  unsigned blocks = 1;
  unsigned threads = 32;
  std::size_t shared_bytes = 0;
};

/// Queues a kernel on the stream; arguments are copied. What it returns concerns this launch alone.
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const LaunchShape& shape, cudaStream_t stream,
                   Arguments&&... arguments) {
  if (shape.shared_bytes > kUnaskedSharedBytes) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes));
    if (error != cudaSuccess) return error;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.blocks);
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace quern::kernels

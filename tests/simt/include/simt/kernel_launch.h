// Launching a kernel: its arguments are copied now, and its threads call it with them when the stream gets there.
#pragma once

#include <functional>
#include <tuple>
#include <utility>

#include "cuda_runtime_api.h"

namespace simt {

/// Queues the launch; `body` is what each thread runs.
cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> body);

}  // namespace simt

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  std::tuple<Parameters...> copies(std::forward<Arguments>(arguments)...);
  return ::simt::launch_kernel(*config, reinterpret_cast<const void*>(kernel),
                               [kernel, copies = std::move(copies)] { std::apply(kernel, copies); });
}

// CUDA has these for functions of every type, too.
template <class T>
cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, T kernel, int threads,
                                                          std::size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, reinterpret_cast<const void*>(kernel), threads,
                                                       shared_bytes);
}
template <class T>
cudaError_t cudaMalloc(T** pointer, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}
template <class T>
cudaError_t cudaMallocAsync(T** pointer, std::size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}
template <class T>
cudaError_t cudaMallocHost(T** pointer, std::size_t bytes, unsigned flags = 0) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}

// Devices and what they say about themselves: figures like those of an H100, with fewer multiprocessors.
#include <algorithm>
#include <cstdio>

#include "tests/simt/runtime/runtime.h"

namespace {

using simt::Runtime;

constexpr int kVersion = 13000;
constexpr int kThreadsPerMultiprocessor = 2048;
constexpr int kBlocksPerMultiprocessor = 32;
constexpr int kSharedPerMultiprocessor = 228 * 1024;
constexpr int kReservedSharedPerBlock = 1024;
constexpr int kL2Bytes = 50 * 1024 * 1024;
constexpr int kClockKhz = 1980000;
constexpr int kMemoryClockKhz = 2619000;

bool is_device(const Runtime& state, int device) {
  return device >= 0 && static_cast<std::size_t>(device) < state.devices.size();
}

}  // namespace

extern "C" {

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  *driverVersion = kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  *runtimeVersion = kVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return simt::call([&](Runtime& state) {
    *count = static_cast<int>(state.devices.size());
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return simt::call([&](Runtime&) {
    *device = simt::current_device();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  if (simt::in_host_function()) return simt::remember(cudaErrorNotPermitted);
  const std::lock_guard lock(simt::runtime_mutex());
  Runtime& state = simt::runtime();
  if (state.devices.empty()) return simt::remember(cudaErrorNoDevice);
  if (!is_device(state, device)) return simt::remember(cudaErrorInvalidDevice);
  simt::set_current_device(device);
  return simt::remember(state.devices[static_cast<std::size_t>(device)].broken);
}

cudaError_t cudaDeviceSynchronize() {
  return simt::call([&](Runtime& state) {
    for (const auto& capture : state.captures) {
      if (capture->origin->device != simt::current_device()) continue;
      state.invalidate(*capture);
      return cudaErrorStreamCaptureUnsupported;
    }
    ++state.counters.synchronizations;
    state.finish_device(simt::current_device());
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
  return simt::call([&](Runtime& state) {
    if (!is_device(state, device)) return cudaErrorInvalidDevice;
    switch (attr) {
      case cudaDevAttrMaxThreadsPerBlock: *value = 1024; return cudaSuccess;
      case cudaDevAttrMaxGridDimX: *value = 0x7fffffff; return cudaSuccess;
      case cudaDevAttrMaxSharedMemoryPerBlock: *value = simt::kUnaskedSharedBytes; return cudaSuccess;
      case cudaDevAttrWarpSize: *value = 32; return cudaSuccess;
      case cudaDevAttrClockRate: *value = kClockKhz; return cudaSuccess;
      case cudaDevAttrMultiProcessorCount: *value = state.options.multiprocessors; return cudaSuccess;
      case cudaDevAttrIntegrated: *value = 0; return cudaSuccess;
      case cudaDevAttrMemoryClockRate: *value = kMemoryClockKhz; return cudaSuccess;
      case cudaDevAttrL2CacheSize: *value = kL2Bytes; return cudaSuccess;
      case cudaDevAttrMaxThreadsPerMultiProcessor: *value = kThreadsPerMultiprocessor; return cudaSuccess;
      case cudaDevAttrUnifiedAddressing: *value = 1; return cudaSuccess;
      case cudaDevAttrComputeCapabilityMajor: *value = 9; return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor: *value = 0; return cudaSuccess;
      case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = kSharedPerMultiprocessor; return cudaSuccess;
      case cudaDevAttrPageableMemoryAccess: *value = 0; return cudaSuccess;
      case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = simt::kMaxSharedBytes; return cudaSuccess;
      case cudaDevAttrMaxBlocksPerMultiprocessor: *value = kBlocksPerMultiprocessor; return cudaSuccess;
      case cudaDevAttrReservedSharedMemoryPerBlock: *value = kReservedSharedPerBlock; return cudaSuccess;
      case cudaDevAttrMemoryPoolsSupported: *value = 1; return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  return simt::call([&](Runtime& state) {
    if (!is_device(state, device)) return cudaErrorInvalidDevice;
    *prop = {};
    std::snprintf(prop->name, sizeof prop->name, "Simulated device %d", device);
    prop->totalGlobalMem = state.options.memory_bytes;
    prop->sharedMemPerBlock = simt::kUnaskedSharedBytes;
    prop->warpSize = 32;
    prop->maxThreadsPerBlock = 1024;
    prop->major = 9;
    prop->minor = 0;
    prop->multiProcessorCount = state.options.multiprocessors;
    prop->memoryBusWidth = 5120;
    prop->l2CacheSize = kL2Bytes;
    prop->maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
    prop->sharedMemPerMultiprocessor = kSharedPerMultiprocessor;
    prop->sharedMemPerBlockOptin = simt::kMaxSharedBytes;
    prop->memoryPoolsSupported = 1;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attr, int value) {
  return simt::call([&](Runtime& state) {
    if (func == nullptr) return cudaErrorInvalidDeviceFunction;
    if (attr == cudaFuncAttributePreferredSharedMemoryCarveout)
      return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
    if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        static_cast<std::size_t>(value) > simt::kMaxSharedBytes)
      return cudaErrorInvalidValue;
    state.devices[static_cast<std::size_t>(simt::current_device())].shared_limits[func] =
        static_cast<std::size_t>(value);
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void* func, int blockSize,
                                                          size_t dynamicSMemSize) {
  return simt::call([&](Runtime&) {
    if (func == nullptr) return cudaErrorInvalidDeviceFunction;
    if (blockSize < 1) return cudaErrorInvalidValue;
    *numBlocks = 0;
    if (blockSize > 1024 || dynamicSMemSize > simt::kMaxSharedBytes) return cudaSuccess;
    const int by_threads = kThreadsPerMultiprocessor / ((blockSize + 31) / 32 * 32);
    const int by_memory = kSharedPerMultiprocessor / (static_cast<int>(dynamicSMemSize) + kReservedSharedPerBlock);
    *numBlocks = std::min({by_threads, by_memory, kBlocksPerMultiprocessor});
    return cudaSuccess;
  });
}
}

// Allocating and freeing.
#include <algorithm>

#include "tests/simt/runtime/runtime.h"

namespace {

using simt::Allocation;
using simt::Runtime;

cudaError_t allocate(Runtime& state, void** out, std::size_t bytes, bool pinned, bool on_stream) {
  if (out == nullptr) return cudaErrorInvalidValue;
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (state.failing_allocation != 0 && --state.failing_allocation == 0) return cudaErrorMemoryAllocation;
  const int device = simt::current_device();
  if (!pinned && bytes > state.options.memory_bytes - state.memory.used(device)) return cudaErrorMemoryAllocation;
  Allocation* const made = state.memory.allocate(bytes, pinned, device, state.random);
  if (made == nullptr) return cudaErrorMemoryAllocation;
  made->on_stream = on_stream;
  simt::Counters& counters = state.counters;
  if (pinned) {
    ++counters.host_allocations;
  } else {
    ++counters.allocations;
    counters.allocated_bytes += bytes;
    counters.peak_bytes = std::max(counters.peak_bytes, counters.allocated_bytes);
  }
  *out = made->begin;
  return cudaSuccess;
}

void release(Runtime& state, Allocation& allocation) {
  if (allocation.pinned) {
    ++state.counters.host_frees;
  } else {
    ++state.counters.frees;
    state.counters.allocated_bytes -= allocation.bytes;
  }
  state.memory.release(allocation);
}

/// Frees, like CUDA after everything that was queued on the device.
cudaError_t free_now(Runtime& state, void* pointer, bool pinned) {
  if (const cudaError_t error = state.refuse_in_capture(); error != cudaSuccess) return error;
  if (pointer == nullptr) return cudaSuccess;
  Allocation* const found = state.memory.find(pointer);
  if (found == nullptr || found->begin != pointer || found->pinned != pinned) return cudaErrorInvalidValue;
  const int device = found->device;
  ++state.counters.synchronizations;
  state.finish_device(device);
  if (found->freed) return cudaErrorInvalidValue;  // an operation on a stream was first
  release(state, *found);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  return simt::call([&](Runtime& state) {
    if (const cudaError_t error = state.refuse_in_capture(); error != cudaSuccess) return error;
    return allocate(state, devPtr, size, false, false);
  });
}

cudaError_t cudaFree(void* devPtr) {
  return simt::call([&](Runtime& state) { return free_now(state, devPtr, false); });
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  return simt::call([&](Runtime& state) {
    if (const cudaError_t error = state.refuse_in_capture(); error != cudaSuccess) return error;
    if ((flags & ~cudaHostAllocPortable) != 0) return cudaErrorNotSupported;
    return allocate(state, pHost, size, true, false);
  });
}

cudaError_t cudaMallocHost(void** ptr, size_t size) { return cudaHostAlloc(ptr, size, cudaHostAllocDefault); }

cudaError_t cudaFreeHost(void* ptr) {
  return simt::call([&](Runtime& state) { return free_now(state, ptr, true); });
}

cudaError_t cudaMallocAsync(void** devPtr, size_t size, cudaStream_t hStream) {
  return simt::call([&](Runtime& state) {
    CUstream_st* stream = nullptr;
    if (const cudaError_t error = state.own_stream(hStream, stream); error != cudaSuccess) return error;
    if (stream->capture != nullptr) {  // CUDA makes a node of the graph from it
      state.invalidate(*stream->capture);
      return cudaErrorStreamCaptureUnsupported;
    }
    return allocate(state, devPtr, size, false, true);
  });
}

cudaError_t cudaFreeAsync(void* devPtr, cudaStream_t hStream) {
  return simt::call([&](Runtime& state) {
    CUstream_st* stream = nullptr;
    if (const cudaError_t error = state.own_stream(hStream, stream); error != cudaSuccess) return error;
    if (devPtr == nullptr) return cudaSuccess;
    if (stream->capture != nullptr) {
      state.invalidate(*stream->capture);
      return cudaErrorStreamCaptureUnsupported;
    }
    Allocation* const found = state.memory.find(devPtr);
    if (found == nullptr || found->begin != devPtr || !found->on_stream) return cudaErrorInvalidValue;
    return state.enqueue(*stream, {stream->device, [&state, found] {
                                     if (!found->freed) release(state, *found);
                                   }});
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return simt::call([&](Runtime& state) {
    *total = state.options.memory_bytes;
    *free = *total - state.memory.used(simt::current_device());
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* ptr) {
  return simt::call([&](Runtime& state) {
    const Allocation* const found = state.memory.find(ptr);
    auto* const plain = const_cast<void*>(ptr);
    if (found == nullptr) {
      *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, nullptr};
    } else if (found->pinned) {
      *attributes = {cudaMemoryTypeHost, found->device, plain, plain};
    } else {
      *attributes = {cudaMemoryTypeDevice, found->device, plain, nullptr};
    }
    return cudaSuccess;
  });
}
}

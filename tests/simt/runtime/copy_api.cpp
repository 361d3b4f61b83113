// Copies and fills. What a call says about its pointers must be what they are.
#include <cstring>
#include <memory>
#include <vector>

#include "tests/simt/runtime/bit_flips.h"
#include "tests/simt/runtime/runtime.h"

namespace {

using simt::Allocation;
using simt::OperationRef;
using simt::Runtime;

/// What an end of a copy is.
struct End {
  bool valid = false;
  bool on_device = false;
  bool pinned = false;
  int device = -1;
};

End end_of(Runtime& state, const void* at, std::size_t bytes) {
  const Allocation* const found = state.memory.find(at);
  // An address of ours that is not in an allocation is behind one, before one or freed.
  if (found == nullptr) return {at != nullptr && state.memory.describe(at).empty(), false, false, -1};
  const auto offset = static_cast<std::size_t>(static_cast<const unsigned char*>(at) - found->begin);
  return {bytes <= found->bytes - offset, !found->pinned, found->pinned, found->pinned ? -1 : found->device};
}

cudaMemcpyKind kind_of(const End& to, const End& from) {
  if (to.on_device) return from.on_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return from.on_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

/// Device memory of another device than the open one goes through a buffer.
void copy_bytes(Runtime& state, void* to, const End& to_end, const void* from, const End& from_end, std::size_t bytes) {
  if (!to_end.on_device || !from_end.on_device || to_end.device == from_end.device) {
    state.memory.open(to_end.on_device ? to_end.device : from_end.device);
    std::memcpy(to, from, bytes);
    return;
  }
  std::vector<unsigned char> buffer(bytes);
  state.memory.open(from_end.device);
  std::memcpy(buffer.data(), from, bytes);
  state.memory.open(to_end.device);
  std::memcpy(to, buffer.data(), bytes);
}

cudaError_t copy(Runtime& state, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 CUstream_st& stream, bool waits) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (bytes == 0) return cudaSuccess;
  const End to_end = end_of(state, to, bytes);
  const End from_end = end_of(state, from, bytes);
  if (!to_end.valid || !from_end.valid) return cudaErrorInvalidValue;
  const cudaMemcpyKind real = kind_of(to_end, from_end);
  if (kind != cudaMemcpyDefault && kind != real) return cudaErrorInvalidValue;
  ++state.counters.copies[real];
  state.counters.copied_bytes[real] += bytes;
  if (real == cudaMemcpyHostToDevice) simt::note_upload(static_cast<unsigned char*>(to), bytes);

  const bool captured = stream.capture != nullptr;
  const void* source = from;
  std::shared_ptr<std::vector<unsigned char>> staged;
  if (real == cudaMemcpyHostToDevice && !from_end.pinned && !captured) {
    // The caller may change pageable memory as soon as the call has returned.
    const auto* const begin = static_cast<const unsigned char*>(from);
    staged = std::make_shared<std::vector<unsigned char>>(begin, begin + bytes);
    source = staged->data();
  }
  // What goes to pageable memory is there when the call returns.
  const bool to_pageable = !to_end.on_device && !to_end.pinned && !captured;
  OperationRef operation;
  const cudaError_t error =
      state.enqueue(stream,
                    {stream.device, [&state, to, to_end, source, from_end, bytes,
                                     staged] { copy_bytes(state, to, to_end, source, from_end, bytes); }},
                    &operation);
  if (error != cudaSuccess || (!waits && !to_pageable)) return error;
  ++state.counters.synchronizations;
  state.finish(operation);
  return cudaSuccess;
}

cudaError_t fill(Runtime& state, void* to, int value, std::size_t bytes, CUstream_st& stream) {
  if (bytes == 0) return cudaSuccess;
  const End end = end_of(state, to, bytes);
  if (!end.valid || (!end.on_device && !end.pinned)) return cudaErrorInvalidValue;
  if (end.on_device && end.device != stream.device) return cudaErrorInvalidValue;
  ++state.counters.sets;
  return state.enqueue(stream, {stream.device, [to, value, bytes] { std::memset(to, value, bytes); }});
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  return simt::call([&](Runtime& state) {
    if (const cudaError_t error = state.refuse_in_capture(); error != cudaSuccess) return error;
    return copy(state, dst, src, count, kind, *state.find_stream(nullptr), true);
  });
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return simt::call([&](Runtime& state) {
    CUstream_st* const found = state.find_stream(stream);  // of any device
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    return copy(state, dst, src, count, kind, *found, false);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                                cudaStream_t stream) {
  return simt::call([&](Runtime& state) {
    CUstream_st* const found = state.find_stream(stream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    if (count == 0) return cudaSuccess;
    if (end_of(state, dst, count).device != dstDevice || end_of(state, src, count).device != srcDevice)
      return cudaErrorInvalidValue;
    return copy(state, dst, src, count, cudaMemcpyDeviceToDevice, *found, false);
  });
}

cudaError_t cudaMemset(void* devPtr, int value, size_t count) {
  return simt::call([&](Runtime& state) {
    if (const cudaError_t error = state.refuse_in_capture(); error != cudaSuccess) return error;
    return fill(state, devPtr, value, count, *state.find_stream(nullptr));
  });
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count, cudaStream_t stream) {
  return simt::call([&](Runtime& state) {
    CUstream_st* found = nullptr;
    if (const cudaError_t error = state.own_stream(stream, found); error != cudaSuccess) return error;
    return fill(state, devPtr, value, count, *found);
  });
}
}

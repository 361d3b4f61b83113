// Owners of what the CUDA runtime hands out, and its errors as Status. Memory belongs to the device that is current
// when it is made.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include <quern/status.h>

namespace quern::cuda {

inline Status to_status(cudaError_t error) {
  if (error == cudaSuccess) return {};
  if (error == cudaErrorMemoryAllocation)
    return Status(StatusCode::out_of_memory, "the CUDA device or the host has no memory left");
  return Status(StatusCode::device_error, "CUDA error {0}", static_cast<std::int64_t>(error));
}

/// Memory of one kind; grows on demand, and its content is lost when it does.
template <cudaError_t (*kAllocate)(void**, std::size_t), cudaError_t (*kFree)(void*)>
class CudaMemory {
 public:
  CudaMemory() = default;
  ~CudaMemory() { release(); }
  CudaMemory(CudaMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  CudaMemory& operator=(CudaMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  Status reserve(std::uint64_t bytes) {
    if (bytes <= size_) return {};
    release();
    void* data = nullptr;
    QUERN_RETURN_IF_ERROR(to_status(kAllocate(&data, static_cast<std::size_t>(bytes))));
    data_ = static_cast<std::uint8_t*>(data);
    size_ = bytes;
    return {};
  }
  std::uint8_t* data() const { return data_; }
  std::uint64_t size() const { return size_; }

 private:
  void release() noexcept {
    if (data_ != nullptr) static_cast<void>(kFree(data_));
    data_ = nullptr;
    size_ = 0;
  }

  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
};

namespace detail {
inline cudaError_t allocate_device(void** out, std::size_t bytes) { return cudaMalloc(out, bytes); }
inline cudaError_t free_device(void* data) { return cudaFree(data); }
inline cudaError_t allocate_pinned(void** out, std::size_t bytes) { return cudaMallocHost(out, bytes); }
inline cudaError_t free_pinned(void* data) { return cudaFreeHost(data); }
}  // namespace detail

using DeviceMemory = CudaMemory<&detail::allocate_device, &detail::free_device>;
/// Page-locked host memory, which copies reach beside other work.
using PinnedMemory = CudaMemory<&detail::allocate_pinned, &detail::free_pinned>;

/// A queue of device work that waits for no other.
class CudaQueue {
 public:
  CudaQueue() = default;
  ~CudaQueue() {
    if (queue_ != nullptr) static_cast<void>(cudaStreamDestroy(queue_));
  }
  CudaQueue(CudaQueue&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
  CudaQueue& operator=(CudaQueue&& other) noexcept {
    std::swap(queue_, other.queue_);
    return *this;
  }

  Status open() { return to_status(cudaStreamCreateWithFlags(&queue_, cudaStreamNonBlocking)); }
  Status wait() const { return to_status(cudaStreamSynchronize(queue_)); }
  cudaStream_t get() const { return queue_; }

 private:
  cudaStream_t queue_ = nullptr;
};

/// Makes a device the current one of this thread for as long as it lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) {
    status_ = to_status(cudaGetDevice(&before_));
    if (status_.ok() && ordinal != before_) {
      status_ = to_status(cudaSetDevice(ordinal));
      changed_ = status_.ok();
    }
  }
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  const Status& status() const { return status_; }

 private:
  Status status_;
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace quern::cuda

// The CUDA runtime as the benchmarks use it: errors become exceptions, what is taken is given back.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quern::bench {

/// Throws std::runtime_error that names `what` unless `error` is cudaSuccess.
void check(cudaError_t error, const char* what);

/// `count` values in device memory; what they are is undefined at first.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::uint64_t count) : count_(count) {
    if (count != 0) check(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), "cudaMalloc");
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { put(values); }
  ~DeviceArray() {
    if (data_ != nullptr) static_cast<void>(cudaFree(data_));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::uint64_t count() const { return count_; }
  std::uint64_t bytes() const { return count_ * sizeof(T); }

  void put(const std::vector<T>& values) {
    check(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "copy to the device");
  }
  std::vector<T> get() const {
    std::vector<T> values(count_);
    check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "copy from the device");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::uint64_t count_ = 0;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// What a report says of the device.
struct Machine {
  char name[256] = {};
  int major = 0;
  int minor = 0;
  int multiprocessors = 0;
  int clock_khz = 0;         ///< the highest of the multiprocessors; 0 where the driver does not tell
  int memory_clock_khz = 0;  ///< the highest of the memory
  int memory_bus_bits = 0;
  int driver = 0;   ///< the CUDA version that the driver is for, as 1000 * major + 10 * minor
  int runtime = 0;  ///< the one that this program was built with
  std::uint64_t l2_bytes = 0;
  std::uint64_t memory_bytes = 0;
};

/// Of the current device.
Machine describe_machine();

}  // namespace quern::bench

// What tests on the simulator share: a fresh device for each test, memory and streams that belong to it.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/simt/simt.h"

namespace quern::testing {

/// `count` values in device memory.
template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), cudaSuccess);
  }
  explicit DeviceBuffer(const std::vector<T>& values) : DeviceBuffer(values.size()) { put(values); }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  T* data() { return data_; }
  std::size_t count() const { return count_; }
  void put(const std::vector<T>& values) {
    EXPECT_LE(values.size(), count_);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  /// The first values; waits for everything that was queued on the device's blocking streams.
  std::vector<T> get(std::size_t count) const {
    std::vector<T> out(count);
    EXPECT_LE(count, count_);
    EXPECT_EQ(cudaMemcpy(out.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return out;
  }
  std::vector<T> get() const { return get(count_); }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// Starts every test on a fresh simulator and ends it with nothing failed and nothing left behind.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override { simt::reset({}); }
  void TearDown() override {
    EXPECT_EQ(simt::failure(), "");
    EXPECT_EQ(simt::counters().allocations, simt::counters().frees);
    EXPECT_EQ(simt::counters().host_allocations, simt::counters().host_frees);
    EXPECT_EQ(simt::live_handles(), 0u);
  }
};

class Stream {
 public:
  Stream() { EXPECT_EQ(cudaStreamCreate(&stream_), cudaSuccess); }
  ~Stream() { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace quern::testing

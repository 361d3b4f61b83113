// Device memory: what CUDA says about it, and faults on every access that a device or a host may not make.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/common/cuda/launch.cuh"
#include "tests/simt/cuda_test.h"
#include "tests/simt/runtime/sanitizers.h"

namespace quern::testing {
namespace {

using kernels::launch;

__global__ void write_byte(std::uint8_t* at) {
  if (threadIdx.x == 0) *at = 1;
}
__global__ void copy_bytes(const std::uint8_t* from, std::uint8_t* to) { to[threadIdx.x] = from[threadIdx.x]; }

void run_write(std::uint8_t* at) {
  EXPECT_EQ(launch(&write_byte, {1, 32}, nullptr, at), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

class DeviceMemory : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    GTEST_FLAG_SET(death_test_style, "fast");
  }
};

TEST_F(DeviceMemory, HostTouchesDeviceMemory_Dies) {
  DeviceBuffer<std::uint8_t> buffer(1000);
  volatile std::uint8_t* const at = buffer.data();
  EXPECT_DEATH(at[10] = 1, "the host touches .*, byte 10 of 1000 bytes of device memory of device 0");
  EXPECT_DEATH((void)at[999], "the host touches");
}

TEST_F(DeviceMemory, HostTouchesDeviceMemoryAfterAKernel_Dies) {
  DeviceBuffer<std::uint8_t> buffer(1000);
  run_write(buffer.data());
  volatile std::uint8_t* const at = buffer.data();
  EXPECT_DEATH(at[0] = 1, "the host touches");
}

TEST_F(DeviceMemory, KernelWritesBehindItsBuffer_DiesAtTheGuardPage) {
  DeviceBuffer<std::uint8_t> buffer(512);
  EXPECT_DEATH(run_write(buffer.data() + 512), "write_byte|use-after-poison");
  EXPECT_DEATH(run_write(buffer.data() + 512 + 4000), "write_byte|use-after-poison");
}

TEST_F(DeviceMemory, KernelWritesToAnotherDevice_Dies) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  DeviceBuffer<std::uint8_t> buffer(100);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_DEATH(run_write(buffer.data()), "write_byte.* block 0,0,0 thread 0,0,0 touches .*memory of device 1");
}

TEST_F(DeviceMemory, KernelWritesToFreedMemory_Dies) {
  std::uint8_t* at = nullptr;
  ASSERT_EQ(cudaMalloc(&at, 100), cudaSuccess);
  ASSERT_EQ(cudaFree(at), cudaSuccess);
  EXPECT_DEATH(run_write(at), "write_byte.*freed device memory");
  EXPECT_EQ(cudaFree(at), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

#ifdef SIMT_ADDRESS_SANITIZER
TEST_F(DeviceMemory, KernelWritesOneByteBehindAnOddSize_IsSeenByTheSanitizer) {
  DeviceBuffer<std::uint8_t> buffer(1001);
  EXPECT_DEATH(run_write(buffer.data() + 1001), "use-after-poison");
  EXPECT_DEATH(run_write(buffer.data() - 1), "use-after-poison");
  run_write(buffer.data() + 1000);
}

__global__ void write_shared(unsigned at) { simt::shared_bytes()[at] = 1; }

TEST_F(DeviceMemory, KernelWritesBehindSharedMemory_IsSeenByTheSanitizer) {
  const auto run = [](unsigned at) {
    EXPECT_EQ(launch(&write_shared, {1, 32, 100}, nullptr, at), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  };
  EXPECT_DEATH(run(100), "heap-buffer-overflow");
  run(99);
}
#endif

TEST_F(DeviceMemory, NewMemory_IsAlignedAndFullOfNoise) {
  std::vector<std::vector<std::uint8_t>> contents;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    simt::Options options;
    options.seed = seed;
    simt::reset(options);
    DeviceBuffer<std::uint8_t> buffer(77);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0u);
    contents.push_back(buffer.get());
  }
  EXPECT_NE(contents[0], contents[1]);
}

TEST_F(DeviceMemory, Copies_RefusePointersThatAreNotWhatTheCallSays) {
  DeviceBuffer<std::uint8_t> a(100), b(100);
  std::vector<std::uint8_t> host(200);
  EXPECT_EQ(cudaMemcpy(host.data(), a.data(), 100, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(a.data(), host.data(), 100, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(a.data(), host.data(), 100, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(a.data(), host.data(), 101, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(a.data() + 60, host.data(), 41, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(a.data() + 100, host.data(), 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 0, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(a.data(), 0, 101), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(a.data(), 7, 100), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(b.data(), a.data(), 100, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(b.get(), std::vector<std::uint8_t>(100, 7));
  EXPECT_EQ(simt::counters().copies[cudaMemcpyDeviceToDevice], 1u);
  EXPECT_EQ(simt::counters().copied_bytes[cudaMemcpyDeviceToHost], 100u);
}

TEST_F(DeviceMemory, CopyBetweenDevices_Works) {
  DeviceBuffer<std::uint8_t> a(std::vector<std::uint8_t>{1, 2, 3});
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  DeviceBuffer<std::uint8_t> b(3);
  ASSERT_EQ(cudaMemcpyPeerAsync(b.data(), 1, a.data(), 0, 3), cudaSuccess);
  EXPECT_EQ(b.get(), (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(cudaMemcpyPeerAsync(b.data(), 0, a.data(), 1, 3), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(a.data(), 0, 3), cudaErrorInvalidValue);
}

TEST_F(DeviceMemory, Attributes_TellDevicePinnedAndOrdinaryMemory) {
  DeviceBuffer<std::uint8_t> buffer(10);
  std::uint8_t* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 10), cudaSuccess);
  std::memset(pinned, 0, 10);
  int local = 0;
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, buffer.data() + 9), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &local), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaFree(pinned), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(DeviceMemory, Kernels_ReachPinnedMemory) {
  std::uint8_t* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 64), cudaSuccess);
  std::memset(pinned, 0, 64);
  run_write(pinned + 63);
  EXPECT_EQ(pinned[63], 1);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(DeviceMemory, Limit_IsKeptForEachDevice) {
  simt::Options options;
  options.memory_bytes = 1 << 20;
  simt::reset(options);
  DeviceBuffer<std::uint8_t> most(900'000);
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(total, 1u << 20);
  EXPECT_EQ(free, (1u << 20) - 900'000);
  std::uint8_t* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 200'000), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&more, 200'000), cudaSuccess);
  EXPECT_EQ(cudaFree(more), cudaSuccess);
  EXPECT_EQ(simt::counters().peak_bytes, 1'100'000u);
}

TEST_F(DeviceMemory, FailAllocation_TheOneThatWasCounted) {
  simt::fail_allocation(2);
  std::uint8_t* a = nullptr;
  std::uint8_t* b = nullptr;
  ASSERT_EQ(cudaMalloc(&a, 8), cudaSuccess);
  EXPECT_EQ(cudaMallocHost(&b, 8), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMallocAsync(&b, 8, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(b, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(a, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(a), cudaSuccess);
}

TEST_F(DeviceMemory, FreeOnAStream_ComesAfterWhatWasQueuedBefore) {
  Stream stream;
  std::uint8_t* a = nullptr;
  DeviceBuffer<std::uint8_t> out(std::vector<std::uint8_t>(32, 0));
  ASSERT_EQ(cudaMallocAsync(&a, 32, stream), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(a, 9, 32, stream), cudaSuccess);
  ASSERT_EQ(launch(&copy_bytes, {1, 32}, stream, a, out.data()), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(a, stream), cudaSuccess);
  EXPECT_EQ(simt::counters().frees, 0u);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(simt::counters().frees, 1u);
  EXPECT_EQ(out.get(), std::vector<std::uint8_t>(32, 9));
}

}  // namespace
}  // namespace quern::testing

// Streams, events and launches: what was queued runs in the order that CUDA promises and in no other.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kernels/common/cuda/launch.cuh"
#include "tests/simt/cuda_test.h"

namespace quern::testing {
namespace {

using kernels::launch;

/// Writes its number at the next place of a log.
__global__ void note(std::uint32_t* log, std::uint32_t number) {
  if (threadIdx.x == 0) log[1 + atomicAdd(log, 1u)] = number;
}

class Streams : public CudaTest {
 protected:
  static void seed(std::uint64_t seed) {
    simt::Options options;
    options.seed = seed;
    simt::reset(options);
  }
  using Log = DeviceBuffer<std::uint32_t>;
  static std::vector<std::uint32_t> empty_log() { return std::vector<std::uint32_t>(32, 0); }
  static void queue_note(Log& log, std::uint32_t number, cudaStream_t stream) {
    EXPECT_EQ(launch(&note, {1, 32}, stream, log.data(), number), cudaSuccess);
  }
  static std::vector<std::uint32_t> read(Log& log) {
    auto all = log.get();
    return {all.begin() + 1, all.begin() + 1 + all[0]};
  }
};

TEST_F(Streams, NothingRuns_BeforeSomethingWaits) {
  std::uint8_t* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 4), cudaSuccess);
  std::memset(pinned, 1, 4);
  DeviceBuffer<std::uint8_t> buffer(std::vector<std::uint8_t>{5, 6, 7, 8});
  Stream stream;
  ASSERT_EQ(cudaMemcpyAsync(pinned, buffer.data(), 4, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(pinned[0], 1);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(pinned[0], 5);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(Streams, PageableMemory_SourceIsReadAtOnceAndTargetIsFullOnReturn) {
  DeviceBuffer<std::uint8_t> buffer(4);
  Stream stream;
  std::vector<std::uint8_t> host{1, 2, 3, 4};
  ASSERT_EQ(cudaMemcpyAsync(buffer.data(), host.data(), 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  host.assign(4, 9);
  EXPECT_EQ(simt::counters().synchronizations, 0u);
  ASSERT_EQ(cudaMemcpyAsync(host.data(), buffer.data(), 4, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(host, (std::vector<std::uint8_t>{1, 2, 3, 4}));
  EXPECT_EQ(simt::counters().synchronizations, 1u);
}

TEST_F(Streams, OneStream_KeepsItsOrder) {
  for (std::uint64_t s = 1; s <= 5; ++s) {
    seed(s);
    Log log(empty_log());
    Stream stream;
    for (std::uint32_t i = 1; i <= 8; ++i) queue_note(log, i, stream);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(read(log), (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  }
}

TEST_F(Streams, TwoStreams_RunInManyOrders) {
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t s = 1; s <= 10; ++s) {
    seed(s);
    Log log(empty_log());
    Stream a, b;
    for (std::uint32_t i = 1; i <= 3; ++i) {
      queue_note(log, i, a);
      queue_note(log, 10 + i, b);
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    orders.insert(read(log));
  }
  EXPECT_GT(orders.size(), 3u);
}

TEST_F(Streams, Event_HoldsAnotherStreamBack) {
  for (std::uint64_t s = 1; s <= 10; ++s) {
    seed(s);
    Log log(empty_log());
    Stream a, b;
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(b, event), cudaSuccess);  // never recorded: nothing to wait for
    queue_note(log, 1, a);
    ASSERT_EQ(cudaEventRecord(event, a), cudaSuccess);
    queue_note(log, 2, a);
    ASSERT_EQ(cudaStreamWaitEvent(b, event), cudaSuccess);
    queue_note(log, 3, b);
    ASSERT_EQ(cudaStreamSynchronize(b), cudaSuccess);
    const auto order = read(log);
    EXPECT_EQ(order[0], 1u);
    EXPECT_EQ(order.size(), 3u);
    EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  }
}

TEST_F(Streams, LegacyStream_WaitsForBlockingStreamsAndTheyForIt) {
  unsigned early = 0;
  for (std::uint64_t s = 1; s <= 10; ++s) {
    seed(s);
    Log log(empty_log());
    Stream a;
    cudaStream_t free = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking), cudaSuccess);
    queue_note(log, 1, a);
    queue_note(log, 2, nullptr);
    queue_note(log, 3, a);
    queue_note(log, 9, free);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    auto order = read(log);
    early += order.back() != 9 ? 1 : 0;
    std::erase(order, 9u);
    EXPECT_EQ(order, (std::vector<std::uint32_t>{1, 2, 3}));
    EXPECT_EQ(cudaStreamDestroy(free), cudaSuccess);
  }
  EXPECT_GT(early, 0u);
}

TEST_F(Streams, Queries_AreNotReadyForAWhileAndThenReady) {
  unsigned not_ready = 0;
  for (std::uint64_t s = 1; s <= 5; ++s) {
    seed(s);
    Log log(empty_log());
    Stream stream;
    for (std::uint32_t i = 0; i < 6; ++i) queue_note(log, i, stream);
    unsigned asked = 0;
    while (cudaStreamQuery(stream) == cudaErrorNotReady) ASSERT_LT(++asked, 1000u);
    not_ready += asked;
    EXPECT_EQ(read(log).size(), 6u);
  }
  EXPECT_GT(not_ready, 5u);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Streams, HostFunction_RunsInItsPlaceAndMayNotCallCuda) {
  struct Seen {
    std::uint8_t* pinned;
    int value = -1;
    cudaError_t error = cudaSuccess;
  } seen{};
  ASSERT_EQ(cudaMallocHost(&seen.pinned, 1), cudaSuccess);
  *seen.pinned = 0;
  DeviceBuffer<std::uint8_t> buffer(std::vector<std::uint8_t>{42});
  Stream stream;
  ASSERT_EQ(cudaMemcpyAsync(seen.pinned, buffer.data(), 1, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(
                stream,
                [](void* data) {
                  auto& s = *static_cast<Seen*>(data);
                  s.value = *s.pinned;
                  s.error = cudaDeviceSynchronize();
                },
                &seen),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(seen.value, 42);
  EXPECT_EQ(seen.error, cudaErrorNotPermitted);
  ASSERT_EQ(cudaFreeHost(seen.pinned), cudaSuccess);
}

TEST_F(Streams, WrongDevice_IsRefused) {
  Log log(empty_log());
  Stream stream;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(launch(&note, {1, 32}, stream, log.data(), 1u), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaMemsetAsync(log.data(), 0, 4, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle);  // device 1's legacy stream
  int device = -1;
  EXPECT_EQ(cudaStreamGetDevice(stream, &device), cudaSuccess);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
}

TEST_F(Streams, Arguments_AreCopiedWhenTheKernelIsQueued) {
  Log log(empty_log());
  std::uint32_t number = 5;
  ASSERT_EQ(launch(&note, {1, 32}, nullptr, log.data(), number), cudaSuccess);
  number = 6;
  EXPECT_EQ(read(log), std::vector<std::uint32_t>{5});
}

TEST_F(Streams, LaunchesThatNoDeviceTakes_AreRefused) {
  Log log(empty_log());
  const auto try_launch = [&](unsigned blocks, unsigned threads, std::size_t shared) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    return cudaLaunchKernelEx(&config, &note, log.data(), 1u);
  };
  EXPECT_EQ(try_launch(0, 32, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(try_launch(1, 0, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(try_launch(1, 1025, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(try_launch(1, 32, 48 * 1024 + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(&note, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 * 1024),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(&note, cudaFuncAttributeMaxDynamicSharedMemorySize, 50 * 1024), cudaSuccess);
  EXPECT_EQ(try_launch(1, 32, 50 * 1024), cudaSuccess);
  EXPECT_EQ(try_launch(1, 32, 50 * 1024 + 1), cudaErrorInvalidValue);
  EXPECT_EQ(launch(&note, {1, 32, 227 * 1024}, nullptr, log.data(), 2u), cudaSuccess);
  EXPECT_EQ(launch(&note, {1, 32, 227 * 1024 + 1}, nullptr, log.data(), 3u), cudaErrorInvalidValue);
  EXPECT_EQ(simt::counters().launches, 2u);
  EXPECT_EQ(read(log).size(), 2u);
}

TEST_F(Streams, Occupancy_FollowsThreadsAndSharedMemory) {
  int blocks = 0;
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &note, 256, 0), cudaSuccess);
  EXPECT_EQ(blocks, 8);
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &note, 32, 100 * 1024), cudaSuccess);
  EXPECT_EQ(blocks, 2);
}

TEST_F(Streams, HostThreads_HaveADeviceAndALastErrorEach) {
  std::vector<std::uint32_t> sums(4);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t, &sums] {
      EXPECT_EQ(cudaSetDevice(static_cast<int>(t % 2)), cudaSuccess);
      EXPECT_EQ(cudaFree(&sums), cudaErrorInvalidValue);
      for (std::uint32_t round = 0; round < 20; ++round) {
        Log log(empty_log());
        Stream stream;
        for (std::uint32_t i = 0; i < 3; ++i) queue_note(log, 100 * t + i, stream);
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        for (const std::uint32_t n : read(log)) sums[t] += n;
      }
      EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    });
  for (std::thread& thread : threads) thread.join();
  for (unsigned t = 0; t < 4; ++t) EXPECT_EQ(sums[t], 20 * (300 * t + 3));
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Streams, NoDevice_EveryCallSaysSo) {
  simt::Options options;
  options.devices = 0;
  simt::reset(options);
  int count = 7;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 8), cudaErrorNoDevice);
  EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), "cudaErrorNoDevice");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorNoDevice), "no CUDA-capable device is detected");
}

}  // namespace
}  // namespace quern::testing

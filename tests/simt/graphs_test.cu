// Graphs: captured from one stream or several, run again and again; calls that no capture allows.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "kernels/common/cuda/launch.cuh"
#include "tests/simt/cuda_test.h"

namespace quern::testing {
namespace {

using kernels::launch;

__global__ void append(std::uint32_t* log, std::uint32_t number) {
  if (threadIdx.x == 0) log[1 + atomicAdd(log, 1u)] = number;
}

class Graphs : public CudaTest {
 protected:
  void SetUp() override { start(1); }
  void start(std::uint64_t seed) {
    simt::Options options;
    options.seed = seed;
    simt::reset(options);
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&log_, 100 * sizeof *log_), cudaSuccess);
    ASSERT_EQ(cudaMemset(log_, 0, 100 * sizeof *log_), cudaSuccess);
  }
  void end() {
    ASSERT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    ASSERT_EQ(cudaFree(log_), cudaSuccess);
  }
  void TearDown() override {
    end();
    CudaTest::TearDown();
  }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, mode), cudaSuccess);
  }
  void queue(std::uint32_t number, cudaStream_t stream) {
    ASSERT_EQ(launch(&append, {1, 32}, stream, log_, number), cudaSuccess);
  }
  std::vector<std::uint32_t> log() {
    std::vector<std::uint32_t> all(100);
    EXPECT_EQ(cudaMemcpy(all.data(), log_, 400, cudaMemcpyDeviceToHost), cudaSuccess);
    return {all.begin() + 1, all.begin() + 1 + all[0]};
  }
  /// Ends a capture that something has spoilt.
  void expect_spoilt() {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudaStreamIsCapturing(stream_, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
  }
  cudaStream_t stream_ = nullptr;
  std::uint32_t* log_ = nullptr;
};

TEST_F(Graphs, CapturedStream_RunsOnlyWhenTheGraphIsLaunched) {
  begin();
  queue(1, stream_);
  ASSERT_EQ(cudaMemsetAsync(log_ + 50, 1, 4, stream_), cudaSuccess);
  queue(2, stream_);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_TRUE(log().empty());
  std::size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 3u);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(log(), (std::vector<std::uint32_t>{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(simt::counters().graph_launches, 3u);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(Graphs, ForkAndJoin_BranchesInAnyOrderBetweenFirstAndLast) {
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    end();
    start(seed);
    Stream side;
    cudaEvent_t fork = nullptr, join = nullptr;
    ASSERT_EQ(cudaEventCreate(&fork), cudaSuccess);
    ASSERT_EQ(cudaEventCreate(&join), cudaSuccess);
    begin();
    queue(1, stream_);
    ASSERT_EQ(cudaEventRecord(fork, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(side, fork), cudaSuccess);
    queue(2, side);
    queue(3, stream_);
    ASSERT_EQ(cudaEventRecord(join, side), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(join), cudaErrorCapturedEvent);
    ASSERT_EQ(cudaStreamWaitEvent(stream_, join), cudaSuccess);
    queue(4, stream_);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    const auto order = log();
    ASSERT_EQ(order.size(), 4u);
    EXPECT_EQ(order.front(), 1u);
    EXPECT_EQ(order.back(), 4u);
    orders.insert(order);
    ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    ASSERT_EQ(cudaEventDestroy(fork), cudaSuccess);
    ASSERT_EQ(cudaEventDestroy(join), cudaSuccess);
  }
  EXPECT_EQ(orders.size(), 2u);
}

TEST_F(Graphs, CallsThatAllocateOrWait_SpoilTheCapture) {
  const auto expect_refused = [&](cudaError_t error) {
    EXPECT_EQ(error, cudaErrorStreamCaptureUnsupported);
    expect_spoilt();
    begin();
  };
  void* memory = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  begin();
  expect_refused(cudaMalloc(&memory, 8));
  expect_refused(cudaMallocHost(&memory, 8));
  expect_refused(cudaMallocAsync(&memory, 8, stream_));
  expect_refused(cudaFree(log_));
  expect_refused(cudaStreamSynchronize(stream_));
  expect_refused(cudaStreamQuery(stream_));
  expect_refused(cudaDeviceSynchronize());
  expect_refused(cudaMemcpy(log_, log_ + 1, 4, cudaMemcpyDeviceToDevice));
  expect_refused(cudaMemset(log_, 0, 4));
  expect_refused(cudaEventQuery(event));
  expect_refused(cudaEventSynchronize(event));
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(Graphs, RelaxedCapture_AllowsAllocations) {
  begin(cudaStreamCaptureModeRelaxed);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 8), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(Graphs, LegacyStreamMeanwhile_SpoilsTheCapture) {
  begin();
  EXPECT_EQ(cudaMemsetAsync(log_, 0, 4, nullptr), cudaErrorStreamCaptureImplicit);
  expect_spoilt();
}

TEST_F(Graphs, WaitForAnEventFromOutside_SpoilsTheCapture) {
  Stream other;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, other), cudaSuccess);
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event), cudaErrorStreamCaptureIsolation);
  expect_spoilt();
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(Graphs, BranchThatIsNotJoined_IsRefused) {
  Stream side;
  cudaEvent_t fork = nullptr;
  ASSERT_EQ(cudaEventCreate(&fork), cudaSuccess);
  begin();
  ASSERT_EQ(cudaEventRecord(fork, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(side, fork), cudaSuccess);
  queue(1, side);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorIllegalState);
  ASSERT_EQ(cudaEventDestroy(fork), cudaSuccess);
}

}  // namespace
}  // namespace quern::testing

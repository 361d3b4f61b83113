// The device that the tests run on: the simulator, or the machine's own; without one they are skipped.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>

#include <quern/dtype.h>

#if defined(QUERN_SIMT)
#include "tests/simt/simt.h"
#endif

namespace quern::test {

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no device on this machine";
  }

  /// Begins with nothing on the device. The seed orders what CUDA leaves open; a real device orders it by itself.
  static void start([[maybe_unused]] std::uint64_t seed = 1) {
#if defined(QUERN_SIMT)
    simt::reset({.seed = seed});
#endif
  }
};

class OnDeviceForType : public OnDevice, public ::testing::WithParamInterface<DType> {};

/// Captures what `queue(stream)` queues, which fails if it allocates or waits, and runs it `times` times.
template <class F>
void run_captured(int times, F&& queue) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(queue(stream), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t run = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&run, graph, 0), cudaSuccess);
  for (int i = 0; i < times; ++i) ASSERT_EQ(cudaGraphLaunch(run, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(run), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace quern::test

// Functions that kernels share, called directly: what the arrays of other tests do not bring about.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/cuda/copy_bytes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/look_back.cuh"
#include "tests/simt/cuda_test.h"

namespace quern::kernels {
namespace {

using quern::testing::DeviceBuffer;
using quern::testing::Stream;

__global__ void look_back_once(std::uint64_t* states, std::uint64_t index, std::uint64_t own, std::uint64_t* before) {
  const std::uint64_t sum = look_back(states, index, own);
  if (threadIdx.x == 0) *before = sum;
}

__global__ void copy_with_warp(std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes) {
  copy_bytes(to, from, bytes, threadIdx.x, kLanes);
}

class DeviceCode : public quern::testing::CudaTest {};

TEST_F(DeviceCode, LookBack_OverMorePredecessorsThanAStepTakes) {
  // Numbers that know their own bytes alone, behind one that knows its sum: as many as a large device runs at a time.
  for (const std::uint64_t index : {0, 1, 2, 31, 32, 33, 64, 65, 100, 1000})
    for (const std::uint64_t last_sum : {0, 1, 30, 31, 32, 40, 99}) {
      if (last_sum >= index && index != 0) continue;
      std::vector<std::uint64_t> states(index + 1, 0);
      std::uint64_t expected = 0;
      for (std::uint64_t i = 0; i < index; ++i) {
        const std::uint64_t bytes = 1 + i * 977 % 5000;
        expected += bytes;
        const bool knows_sum = i <= last_sum;
        states[i] = (knows_sum ? expected : bytes) << kLookBackFlagBits |
                    static_cast<std::uint64_t>(knows_sum ? LookBackState::sum : LookBackState::own);
      }
      DeviceBuffer<std::uint64_t> device_states(states), before(1);
      Stream stream;
      ASSERT_EQ(
          launch(&look_back_once, {1, kLanes}, stream, device_states.data(), index, std::uint64_t{12}, before.data()),
          cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(before.get()[0], expected) << index << " " << last_sum;
      EXPECT_EQ(device_states.get()[index],
                (expected + 12) << kLookBackFlagBits | static_cast<std::uint64_t>(LookBackState::sum));
    }
}

TEST_F(DeviceCode, CopyBytes_AnyAlignment_TouchesNothingElse) {
  // Both ends of both buffers are ends of what is allocated, by turns; an odd number of bytes, which sanitizers see.
  constexpr std::size_t kRoom = 509;
  std::vector<std::uint8_t> pattern(kRoom);
  std::iota(pattern.begin(), pattern.end(), std::uint8_t{1});
  DeviceBuffer<std::uint8_t> from(pattern), to(kRoom);
  Stream stream;
  for (const std::size_t bytes : {0, 1, 2, 3, 4, 5, 7, 8, 31, 64, 127, 300})
    for (std::size_t source = 0; source < 4; ++source)
      for (std::size_t target = 0; target < 4; ++target)
        for (const bool at_end : {false, true}) {
          const std::size_t in = at_end ? kRoom - bytes : source;
          const std::size_t out = at_end && source % 2 == 0 ? kRoom - bytes : target;
          to.put(std::vector<std::uint8_t>(kRoom, 0xc3));
          ASSERT_EQ(
              launch(&copy_with_warp, {1, kLanes}, stream, to.data() + out, from.data() + in, std::uint64_t{bytes}),
              cudaSuccess);
          ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
          std::vector<std::uint8_t> wanted(kRoom, 0xc3);
          std::copy_n(pattern.begin() + static_cast<std::ptrdiff_t>(in), bytes,
                      wanted.begin() + static_cast<std::ptrdiff_t>(out));
          ASSERT_EQ(to.get(), wanted) << bytes << " " << in << " " << out;
        }
}

}  // namespace
}  // namespace quern::kernels

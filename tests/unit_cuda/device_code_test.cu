// Functions that kernels share, called directly: what the arrays of other tests do not bring about.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/common/cuda/copy_bytes.cuh"
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "tests/simt/cuda_test.h"

namespace quern::kernels {
namespace {

using quern::testing::DeviceBuffer;
using quern::testing::Stream;

__global__ void copy_with_warp(std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes) {
  copy_bytes(to, from, bytes, threadIdx.x, kLanes);
}

class DeviceCode : public quern::testing::CudaTest {};

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

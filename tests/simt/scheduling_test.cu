// Order of blocks, warps and lanes: drawn from the seed, so that what leans on an order shows; everything that waits
// goes on, or the launch fails with a message.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "tests/simt/cuda_test.h"

namespace quern::testing {
namespace {

using kernels::launch;
using kernels::shared_memory;

struct Words {
  std::uint32_t at[256];
};

/// Every lane reads what its neighbour writes; `synchronized` between the two.
__global__ void neighbours(std::uint32_t* out, bool synchronized) {
  std::uint32_t* const words = shared_memory<Words>().at;
  words[threadIdx.x] = threadIdx.x;
  if (synchronized) __syncthreads();
  out[threadIdx.x] = words[(threadIdx.x + 1) % blockDim.x];
}

/// Blocks take numbers and count how many of them are there at a time.
__global__ void tickets(std::uint32_t* counter, std::uint32_t* order, std::uint32_t* present, std::uint32_t* most) {
  if (threadIdx.x != 0) return;
  order[atomicAdd(counter, 1u)] = blockIdx.x;
  atomicMax(most, atomicAdd(present, 1u) + 1);
  atomicAdd(present, 0u - 1);
}

/// Block 0 waits for the last block.
__global__ void wait_for_last(std::uint32_t* flag) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == gridDim.x - 1) simt::store_release(flag, 1u);
  if (blockIdx.x == 0)
    while (simt::load_acquire(flag) == 0) __nanosleep(100);
}

struct ScanState {
  std::uint32_t number;
  std::uint64_t before;
};
constexpr std::uint64_t kHasOwn = 1ull << 62;
constexpr std::uint64_t kHasPrefix = 2ull << 62;
constexpr std::uint64_t kSumBits = kHasOwn - 1;

/// Exclusive scan of one number a block by looking back at the blocks before, in the order of tickets or of blockIdx.
__global__ void look_back(std::uint32_t* ticket, std::uint64_t* states, const std::uint64_t* in, std::uint64_t* out,
                          bool by_ticket) {
  auto& shared = shared_memory<ScanState>();
  if (threadIdx.x == 0) {
    const std::uint32_t number = by_ticket ? atomicAdd(ticket, 1u) : blockIdx.x;
    simt::store_release(states + number, number == 0 ? kHasPrefix | in[0] : kHasOwn | in[number]);
    std::uint64_t sum = 0;
    for (std::uint32_t at = number; at > 0;) {
      const std::uint64_t state = simt::load_acquire(states + at - 1);
      if (state == 0) continue;
      sum += state & kSumBits;
      if ((state & kHasPrefix) != 0) break;
      --at;
    }
    if (number != 0) simt::store_release(states + number, kHasPrefix | (sum + in[number]));
    shared = {number, sum};
  }
  __syncthreads();
  if (threadIdx.x == blockDim.x - 1) out[shared.number] = shared.before;
}

class Scheduling : public CudaTest {
 protected:
  static simt::Options seeded(std::uint64_t seed, unsigned resident_blocks = 0) {
    simt::Options options;
    options.seed = seed;
    options.resident_blocks = resident_blocks;
    options.idle_steps = 100'000;
    options.print_failures = false;
    return options;
  }
  static std::vector<std::uint32_t> run_neighbours(std::uint64_t seed, unsigned threads, bool synchronized) {
    simt::reset(seeded(seed));
    DeviceBuffer<std::uint32_t> out(threads);
    EXPECT_EQ(launch(&neighbours, {1, threads, sizeof(Words)}, nullptr, out.data(), synchronized), cudaSuccess);
    return out.get();
  }
  /// A scan of 60 blocks; empty when the launch failed.
  static std::vector<std::uint64_t> run_look_back(const simt::Options& options, bool by_ticket) {
    constexpr unsigned kBlocks = 60;
    simt::reset(options);
    std::vector<std::uint64_t> numbers(kBlocks);
    for (std::size_t i = 0; i < kBlocks; ++i) numbers[i] = 3 * i + 1;
    DeviceBuffer<std::uint32_t> ticket(std::vector<std::uint32_t>{0});
    DeviceBuffer<std::uint64_t> states(std::vector<std::uint64_t>(kBlocks, 0)), in(numbers), out(kBlocks);
    EXPECT_EQ(launch(&look_back, {kBlocks, 64, sizeof(ScanState)}, nullptr, ticket.data(), states.data(), in.data(),
                     out.data(), by_ticket),
              cudaSuccess);
    if (cudaDeviceSynchronize() != cudaSuccess) return {};
    return out.get();
  }
};

TEST_F(Scheduling, RaceBetweenLanes_ResultsDifferOverSeeds) {
  std::set<std::vector<std::uint32_t>> results;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) results.insert(run_neighbours(seed, 32, false));
  EXPECT_GT(results.size(), 1u);
}

TEST_F(Scheduling, BarrierBetweenLanes_ResultsAreRightForEverySeed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const unsigned threads : {32u, 64u, 256u}) {
      const auto got = run_neighbours(seed, threads, true);
      for (std::uint32_t t = 0; t < threads; ++t) ASSERT_EQ(got[t], (t + 1) % threads);
    }
}

TEST_F(Scheduling, SameSeed_SameResultsOfARace) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    EXPECT_EQ(run_neighbours(seed, 128, false), run_neighbours(seed, 128, false));
}

TEST_F(Scheduling, BlocksTakeTickets_OrdersDifferAndResidencyIsKept) {
  constexpr unsigned kBlocks = 40;
  std::set<std::vector<std::uint32_t>> orders;
  std::uint32_t most = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    simt::reset(seeded(seed, 3));
    DeviceBuffer<std::uint32_t> counters(std::vector<std::uint32_t>(3, 0)), order(kBlocks);
    ASSERT_EQ(launch(&tickets, {kBlocks, 32}, nullptr, counters.data(), order.data(), counters.data() + 1,
                     counters.data() + 2),
              cudaSuccess);
    const auto got = order.get();
    EXPECT_EQ(std::set<std::uint32_t>(got.begin(), got.end()).size(), kBlocks);
    orders.insert(got);
    const std::uint32_t here = counters.get()[2];
    EXPECT_LE(here, 3u);
    most = std::max(most, here);
  }
  EXPECT_GT(orders.size(), 6u);
  EXPECT_EQ(most, 3u);
}

TEST_F(Scheduling, LookBackByTicket_RightForEverySeedAndResidency) {
  for (const unsigned resident : {1u, 2u, 7u, 60u})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " resident " + std::to_string(resident));
      const auto got = run_look_back(seeded(seed, resident), true);
      ASSERT_EQ(got.size(), 60u);
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i], sum);
        sum += 3 * i + 1;
      }
    }
}

TEST_F(Scheduling, LookBackByBlockIndex_NeverEndsForSomeSeed) {
  unsigned failed = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) failed += run_look_back(seeded(seed, 2), false).empty() ? 1 : 0;
  EXPECT_GT(failed, 0u);
  simt::reset();
}

TEST_F(Scheduling, WaitForABlockThatCannotBegin_FailsAndNamesKernelBlockAndThread) {
  bool failed = false;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    simt::reset(seeded(seed, 1));
    DeviceBuffer<std::uint32_t> flag(std::vector<std::uint32_t>{0});
    ASSERT_EQ(launch(&wait_for_last, {20, 32}, nullptr, flag.data()), cudaSuccess);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess) continue;
    failed = true;
    EXPECT_EQ(error, cudaErrorLaunchFailure);
    const std::string what = simt::failure();
    EXPECT_NE(what.find("wait_for_last"), std::string::npos) << what;
    EXPECT_NE(what.find("block 0,0,0 thread 0,0,0"), std::string::npos) << what;
    EXPECT_NE(what.find("blocks have not begun"), std::string::npos) << what;
  }
  EXPECT_TRUE(failed);
  simt::reset();
}

TEST_F(Scheduling, WaitForAResidentBlock_Ends) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    simt::reset(seeded(seed, 20));
    DeviceBuffer<std::uint32_t> flag(std::vector<std::uint32_t>{0});
    ASSERT_EQ(launch(&wait_for_last, {20, 32}, nullptr, flag.data()), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
}

__global__ void read_shared(std::uint32_t* out) { out[threadIdx.x] = shared_memory<Words>().at[threadIdx.x]; }

TEST_F(Scheduling, UninitialisedSharedMemory_IsNoiseOfTheSeed) {
  std::set<std::vector<std::uint32_t>> results;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    simt::reset(seeded(seed));
    DeviceBuffer<std::uint32_t> out(64);
    ASSERT_EQ(launch(&read_shared, {1, 64, sizeof(Words)}, nullptr, out.data()), cudaSuccess);
    results.insert(out.get());
  }
  EXPECT_EQ(results.size(), 4u);
}

__global__ void note_places(uint3* out) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = {threadIdx.x, threadIdx.y * 100 + blockIdx.y,
                                                                threadIdx.z * 100 + blockIdx.z};
}

TEST_F(Scheduling, ThreeDimensions_EveryThreadOnceAtItsPlace) {
  const dim3 blocks(2, 3, 2), threads(5, 4, 3);
  DeviceBuffer<uint3> out(12 * 60);
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  ASSERT_EQ(cudaLaunchKernelEx(&config, &note_places, out.data()), cudaSuccess);
  const auto got = out.get();
  for (unsigned i = 0; i < got.size(); ++i) {
    const unsigned thread = i % 60, block = i / 60;
    ASSERT_EQ(got[i].x, thread % 5);
    ASSERT_EQ(got[i].y, thread / 5 % 4 * 100 + block / 2 % 3);
    ASSERT_EQ(got[i].z, thread / 20 * 100 + block / 6);
  }
}

}  // namespace
}  // namespace quern::testing

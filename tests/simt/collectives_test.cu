// Collective operations against plain definitions, and what happens when lanes do not come together.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include "kernels/common/cuda/launch.cuh"
#include "tests/simt/cuda_test.h"

namespace quern::testing {
namespace {

using kernels::launch;

constexpr unsigned kAll = 0xffffffffu;

/// Runs a kernel in one block; its message, empty when it ended well.
template <class... Parameters, class... Arguments>
std::string failure_of(void (*kernel)(Parameters...), unsigned threads, std::uint64_t seed, Arguments... arguments) {
  simt::Options options;
  options.seed = seed;
  options.print_failures = false;
  simt::reset(options);
  EXPECT_EQ(launch(kernel, {1, threads}, nullptr, arguments...), cudaSuccess);
  const cudaError_t error = cudaDeviceSynchronize();
  const std::string what = simt::failure();
  EXPECT_EQ(error, what.empty() ? cudaSuccess : cudaErrorLaunchFailure);
  simt::reset();
  return what;
}

void expect_in(const std::string& what, const std::string& part) {
  EXPECT_NE(what.find(part), std::string::npos) << what;
}

struct Shuffled {
  std::uint64_t from, up, down, bits;
};

__global__ void shuffles(const std::uint64_t* in, Shuffled* out, unsigned operand, int width) {
  const std::uint64_t own = in[threadIdx.x];
  out[threadIdx.x] = {__shfl_sync(kAll, own, static_cast<int>(operand), width),
                      __shfl_up_sync(kAll, own, operand, width), __shfl_down_sync(kAll, own, operand, width),
                      __shfl_xor_sync(kAll, own, static_cast<int>(operand), width)};
}

class Collectives : public CudaTest {};

TEST_F(Collectives, Shuffles_EveryDistanceAndWidthAsDefined) {
  std::vector<std::uint64_t> numbers(32);
  for (std::uint64_t i = 0; i < 32; ++i) numbers[i] = (i + 1) << 40 | i;
  DeviceBuffer<std::uint64_t> in(numbers);
  DeviceBuffer<Shuffled> out(32);
  for (const unsigned width : {1u, 2u, 8u, 16u, 32u})
    for (unsigned operand = 0; operand < 32; ++operand) {
      ASSERT_EQ(launch(&shuffles, {1, 32}, nullptr, in.data(), out.data(), operand, static_cast<int>(width)),
                cudaSuccess);
      const auto got = out.get();
      for (unsigned l = 0; l < 32; ++l) {
        const unsigned first = l / width * width;
        const unsigned end = first + width;
        ASSERT_EQ(got[l].from, numbers[first + operand % width]);
        ASSERT_EQ(got[l].up, numbers[l >= first + operand ? l - operand : l]);
        ASSERT_EQ(got[l].down, numbers[l + operand < end ? l + operand : l]);
        ASSERT_EQ(got[l].bits, numbers[(l ^ operand) < end ? l ^ operand : l]);
      }
    }
}

struct Reduced {
  unsigned ballot, any, all, add, both, either, smallest, largest, match;
  int lowest, highest, sum;
};

__global__ void reductions(const int* in, Reduced* out, unsigned mask) {
  if ((mask >> threadIdx.x & 1) == 0) return;
  const int own = in[threadIdx.x];
  const auto bits = static_cast<unsigned>(own);
  Reduced r{};
  r.ballot = __ballot_sync(mask, own > 0);
  r.any = static_cast<unsigned>(__any_sync(mask, own > 90));
  r.all = static_cast<unsigned>(__all_sync(mask, own > -200));
  r.add = __reduce_add_sync(mask, bits);
  r.both = __reduce_and_sync(mask, bits);
  r.either = __reduce_or_sync(mask, bits);
  r.smallest = __reduce_min_sync(mask, bits);
  r.largest = __reduce_max_sync(mask, bits);
  r.match = __match_any_sync(mask, own / 10);
  r.lowest = __reduce_min_sync(mask, own);
  r.highest = __reduce_max_sync(mask, own);
  r.sum = __reduce_add_sync(mask, own);
  out[threadIdx.x] = r;
}

TEST_F(Collectives, Reductions_OverAnyMaskAsDefined) {
  std::vector<int> numbers(32);
  for (int i = 0; i < 32; ++i) numbers[static_cast<std::size_t>(i)] = i * 37 % 101 - 50;
  DeviceBuffer<int> in(numbers);
  DeviceBuffer<Reduced> out(32);
  for (const unsigned mask : {kAll, 1u, 0x80000000u, 0x0f0f1234u, 0x7fffffffu}) {
    ASSERT_EQ(launch(&reductions, {1, 32}, nullptr, in.data(), out.data(), mask), cudaSuccess);
    const auto got = out.get();
    Reduced r{0, 0, 1, 0, ~0u, 0, ~0u, 0, 0, 1 << 30, -(1 << 30), 0};
    for (unsigned l = 0; l < 32; ++l) {
      if ((mask >> l & 1) == 0) continue;
      const int own = numbers[l];
      const auto bits = static_cast<unsigned>(own);
      r.ballot |= static_cast<unsigned>(own > 0) << l;
      r.any |= own > 90 ? 1 : 0;
      r.add += bits;
      r.both &= bits;
      r.either |= bits;
      r.smallest = std::min(r.smallest, bits);
      r.largest = std::max(r.largest, bits);
      r.lowest = std::min(r.lowest, own);
      r.highest = std::max(r.highest, own);
      r.sum += own;
    }
    for (unsigned l = 0; l < 32; ++l) {
      if ((mask >> l & 1) == 0) continue;
      r.match = 0;
      for (unsigned m = 0; m < 32; ++m)
        r.match |= static_cast<unsigned>((mask >> m & 1) != 0 && numbers[m] / 10 == numbers[l] / 10) << m;
      using Words = std::array<unsigned, 12>;
      ASSERT_EQ(std::bit_cast<Words>(got[l]), std::bit_cast<Words>(r));
    }
  }
}

/// A lane reads from one that the mask does not name.
__global__ void read_unnamed(unsigned* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, threadIdx.x, 16 + static_cast<int>(threadIdx.x));
}

TEST_F(Collectives, ShuffleFromUnnamedLane_IsNoise) {
  std::vector<std::vector<unsigned>> results;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    simt::Options options;
    options.seed = seed;
    simt::reset(options);
    DeviceBuffer<unsigned> out(16);
    ASSERT_EQ(launch(&read_unnamed, {1, 32}, nullptr, out.data()), cudaSuccess);
    results.push_back(out.get());
  }
  EXPECT_NE(results[0], results[1]);
}

__global__ void halves_apart(unsigned* out) {
  unsigned sum = 0;
  if (threadIdx.x < 16) {
    for (unsigned i = 0; i < 5; ++i) sum += __reduce_add_sync(0x0000ffffu, threadIdx.x);
  } else {
    sum = __ballot_sync(0xffff0000u, threadIdx.x % 2 == 0);
  }
  __syncwarp();
  out[threadIdx.x] = sum;
}

TEST_F(Collectives, DisjointMasks_GoOnApartAndMeetAgain) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    simt::Options options;
    options.seed = seed;
    simt::reset(options);
    DeviceBuffer<unsigned> out(32);
    ASSERT_EQ(launch(&halves_apart, {1, 32}, nullptr, out.data()), cudaSuccess);
    const auto got = out.get();
    for (unsigned l = 0; l < 32; ++l) ASSERT_EQ(got[l], l < 16 ? 600u : 0x55550000u);
  }
}

__global__ void diverging_operations() {
  if (threadIdx.x == 7) {
    __syncwarp();
  } else {
    __ballot_sync(kAll, 1);
  }
}
__global__ void diverging_masks() { __ballot_sync(threadIdx.x < 8 ? kAll : 0xffffff0fu | 1u << threadIdx.x, 1); }
__global__ void diverging_types() {
  if (threadIdx.x % 2 == 0) {
    __shfl_sync(kAll, 1u, 0);
  } else {
    __shfl_sync(kAll, 1ull, 0);
  }
}
__global__ void ended_lanes() {
  if (threadIdx.x % 2 == 0) __syncwarp();
}
__global__ void unnamed_caller() { __syncwarp(1u); }
__global__ void collective_and_barrier() {
  if (threadIdx.x == 3) {
    __syncthreads();
  } else {
    __syncwarp();
  }
}
__global__ void barriers_of_two_kinds() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads_or(1);
  }
}
__global__ void waiting_in_a_circle() {
  // Lane 0 waits for lane 1, that for lane 2, that for lane 0, each at an operation of its own.
  if (threadIdx.x == 0) __syncwarp(3u);
  if (threadIdx.x == 1) __syncwarp(6u);
  if (threadIdx.x == 2) __syncwarp(5u);
}

TEST_F(Collectives, LanesThatDoNotComeTogether_AreReported) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    expect_in(failure_of(&diverging_operations, 32, seed), "diverges: it comes to");
    expect_in(failure_of(&diverging_masks, 32, seed), "with another mask or type");
    expect_in(failure_of(&diverging_types, 32, seed), "with another mask or type");
    expect_in(failure_of(&unnamed_caller, 32, seed), "does not name the calling lane");
    expect_in(failure_of(&collective_and_barrier, 32, seed), "diverges");
    expect_in(failure_of(&barriers_of_two_kinds, 64, seed), "a barrier of another kind");
    expect_in(failure_of(&waiting_in_a_circle, 32, seed), "deadlock");
  }
}

TEST_F(Collectives, LanesThatEndedOrEndWhileOthersWait_AreReported) {
  std::set<std::string> ways;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string what = failure_of(&ended_lanes, 32, seed);
    for (const char* const way :
         {"__syncwarp: the mask names a lane that has ended", "ends while lanes of its warp wait"})
      if (what.find(way) != std::string::npos) ways.insert(way);
  }
  EXPECT_EQ(ways.size(), 2u);
}

TEST_F(Collectives, Message_NamesKernelBlockThreadAndOperations) {
  const std::string what = failure_of(&diverging_operations, 32, 1);
  expect_in(what, "diverging_operations block 0,0,0 thread ");
  expect_in(what, "__syncwarp");
  expect_in(what, "__ballot_sync");
}

/// Lane 0 of warp 0 stays away from the barrier for ever: it waits for a flag that is set behind the barrier.
__global__ void barrier_that_stays_shut(unsigned* flag) {
  if (threadIdx.x == 0)
    while (atomicAdd(flag, 0u) == 0) __nanosleep(10);
  __syncthreads();
  atomicExch(flag, 1u);
}

TEST_F(Collectives, BarrierThatNeverOpens_IsReportedWithThoseThatWait) {
  simt::Options options;
  options.idle_steps = 10'000;
  options.print_failures = false;
  simt::reset(options);
  DeviceBuffer<unsigned> flag(std::vector<unsigned>{0});
  ASSERT_EQ(launch(&barrier_that_stays_shut, {1, 96}, nullptr, flag.data()), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  expect_in(simt::failure(), "no thread ended and no barrier opened in 10000 switches");
  expect_in(simt::failure(), "waits at the block's barrier, with 31 more of its warp");
  expect_in(simt::failure(), "95 threads wait");
  simt::reset();
}

__global__ void counting_barriers(int* out) {
  const auto t = static_cast<int>(threadIdx.x);
  if (t >= 80) return;  // who has ended is not waited for
  const int and_of = __syncthreads_and(t >= 0) * 10 + __syncthreads_and(t != 5);
  const int or_of = __syncthreads_or(t < 0) * 10 + __syncthreads_or(t == 5);
  out[t] = 10000 * and_of + 100 * or_of + __syncthreads_count(t % 3 == 0);
}

TEST_F(Collectives, BarriersThatReduce_SeeEveryThreadThatHasNotEnded) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    simt::Options options;
    options.seed = seed;
    simt::reset(options);
    DeviceBuffer<int> out(80);
    ASSERT_EQ(launch(&counting_barriers, {1, 128}, nullptr, out.data()), cudaSuccess);
    for (const int got : out.get()) ASSERT_EQ(got, 100127);
  }
}

__global__ void trap_in_thread(unsigned thread) {
  if (threadIdx.x == thread) __trap();
}

TEST_F(Collectives, Trap_FailsTheLaunchAndTheDeviceForGood) {
  simt::Options options;
  options.print_failures = false;
  simt::reset(options);
  ASSERT_EQ(launch(&trap_in_thread, {1, 64}, nullptr, 40u), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  expect_in(simt::failure(), "trap_in_thread block 0,0,0 thread 40,0,0");
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  simt::reset();
}

}  // namespace
}  // namespace quern::testing

// The watch on races: what CUDA orders is silent, what it leaves open is reported, whether or not the run went wrong.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

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
  std::uint32_t at[128];
};

enum class Between { nothing, shuffle, warp, block };

/// Each thread writes a word and reads its neighbour's, with something between the two.
__global__ void neighbours(Between between, std::uint32_t* out) {
  auto& words = shared_memory<Words>().at;
  words[threadIdx.x] = threadIdx.x;
  switch (between) {
    case Between::nothing: break;
    case Between::shuffle: __shfl_sync(0xffffffffu, 1, 0); break;
    case Between::warp: __syncwarp(); break;
    case Between::block: __syncthreads(); break;
  }
  out[threadIdx.x] = words[threadIdx.x ^ 1];
}

/// The word is written again before everybody has read it.
__global__ void reuse(bool synchronized, std::uint32_t* out) {
  auto& words = shared_memory<Words>().at;
  for (std::uint32_t round = 0; round < 3; ++round) {
    if (threadIdx.x == 0) words[0] = round;
    __syncthreads();
    out[threadIdx.x] = words[0];
    if (synchronized) __syncthreads();
  }
}

enum class Message { release_acquire, relaxed_load, relaxed_store, fences, fence_of_one_side, of_volatile };

/// Block 0 writes a value and raises a flag, block 1 waits for the flag and reads the value.
__global__ void pass_message(Message kind, std::uint32_t* flag, std::uint32_t* value, std::uint32_t* out) {
  if (threadIdx.x != 0) return;
  const bool fences = kind == Message::fences || kind == Message::of_volatile;
  if (blockIdx.x == 0) {
    *value = 42;
    if (fences || kind == Message::fence_of_one_side) __threadfence();
    if (kind == Message::of_volatile) {
      *static_cast<volatile std::uint32_t*>(flag) = 1;
    } else if (kind == Message::release_acquire || kind == Message::relaxed_load) {
      simt::store_release(flag, 1u);
    } else {
      simt::store_relaxed(flag, 1u);
    }
    return;
  }
  if (kind == Message::of_volatile) {
    while (*static_cast<volatile std::uint32_t*>(flag) == 0) {
    }
  } else if (kind == Message::release_acquire || kind == Message::relaxed_store) {
    while (simt::load_acquire(flag) == 0) __nanosleep(10);
  } else {
    while (simt::load_relaxed(flag) == 0) __nanosleep(10);
  }
  if (fences) __threadfence();
  *out = *value;
}

/// The last block to come sums what all blocks wrote.
__global__ void last_block_sums(std::uint32_t* ticket, std::uint32_t* parts, std::uint32_t* out, bool fences) {
  if (threadIdx.x == 0) parts[blockIdx.x] = blockIdx.x;
  auto& words = shared_memory<Words>().at;
  if (threadIdx.x == 0) {
    if (fences) __threadfence();
    words[0] = atomicAdd(ticket, 1u);
    if (fences) __threadfence();
  }
  __syncthreads();
  if (words[0] + 1 != gridDim.x || threadIdx.x != 7) return;
  std::uint32_t sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += parts[b];
  *out = sum;
}

__global__ void count(std::uint32_t* counter, bool plain_too) {
  atomicAdd(counter, 1u);
  if (plain_too && blockIdx.x == 1) *counter += 1;
}

class Races : public CudaTest {
 protected:
  /// Runs over a few seeds; the message of the first failure, empty when there is none.
  template <class... Parameters, class... Arguments>
  std::string message_of(void (*kernel)(Parameters...), const kernels::LaunchShape& shape, Arguments... arguments) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      simt::Options options;
      options.seed = seed;
      options.watch_races = true;
      options.print_failures = false;
      options.resident_blocks = 2;
      simt::reset(options);
      // Zeros of every kind a kernel here takes.
      DeviceBuffer<std::uint32_t> buffer(std::vector<std::uint32_t>(256, 0));
      EXPECT_EQ(launch(kernel, shape, nullptr, bound(arguments, buffer.data())...), cudaSuccess);
      if (cudaDeviceSynchronize() != cudaSuccess) {
        const std::string what = simt::failure();
        simt::reset();
        return what;
      }
      result_ = buffer.get();
    }
    return {};
  }
  /// An argument that stands for a word of the buffer.
  struct Word {
    std::size_t at;
  };
  static std::uint32_t* bound(Word word, std::uint32_t* buffer) { return buffer + word.at; }
  template <class T>
  static T bound(T argument, std::uint32_t*) {
    return argument;
  }
  std::vector<std::uint32_t> result_;
};

void expect_race(const std::string& what, const std::string& part) {
  EXPECT_NE(what.find("nothing orders the two"), std::string::npos) << what;
  EXPECT_NE(what.find(part), std::string::npos) << what;
}

TEST_F(Races, LanesOfAWarp_AreOrderedBySyncwarpAndBarrierAlone) {
  const kernels::LaunchShape shape{1, 64, sizeof(Words)};
  const std::string what = message_of(&neighbours, shape, Between::nothing, Word{0});
  expect_race(what, "neighbours block 0,0,0 thread ");
  expect_race(what, "of shared memory, which block 0,0,0 thread ");
  expect_race(message_of(&neighbours, shape, Between::shuffle, Word{0}), "of shared memory");
  EXPECT_EQ(message_of(&neighbours, shape, Between::warp, Word{0}), "");
  EXPECT_EQ(message_of(&neighbours, shape, Between::block, Word{0}), "");
}

TEST_F(Races, MemoryThatIsUsedAgain_NeedsABarrierAfterTheReads) {
  const kernels::LaunchShape shape{1, 64, sizeof(Words)};
  expect_race(message_of(&reuse, shape, false, Word{0}), "byte 0 of shared memory");
  EXPECT_EQ(message_of(&reuse, shape, true, Word{0}), "");
}

TEST_F(Races, MessageBetweenBlocks_NeedsReleaseAndAcquireOrFencesOnBothSides) {
  const auto pass = [&](Message kind) {
    return message_of(&pass_message, {2, 32}, kind, Word{0}, Word{100}, Word{200});
  };
  EXPECT_EQ(pass(Message::release_acquire), "");
  EXPECT_EQ(result_[200], 42u);
  EXPECT_EQ(pass(Message::fences), "");
  EXPECT_EQ(pass(Message::of_volatile), "");
  expect_race(pass(Message::relaxed_load), "of device memory of device 0, which block 0,0,0 thread 0,0,0 wrote");
  expect_race(pass(Message::relaxed_store), "byte 400 of 1024 bytes of device memory");
  expect_race(pass(Message::fence_of_one_side), "reads 4 bytes");
}

TEST_F(Races, LastBlock_NeedsFencesAroundItsTicket) {
  const kernels::LaunchShape shape{5, 64, sizeof(Words)};
  EXPECT_EQ(message_of(&last_block_sums, shape, Word{0}, Word{1}, Word{100}, true), "");
  EXPECT_EQ(result_[100], 10u);
  expect_race(message_of(&last_block_sums, shape, Word{0}, Word{1}, Word{100}, false), "thread 7,0,0 reads 4 bytes");
}

TEST_F(Races, Atomics_RaceWithPlainAccessesAlone) {
  EXPECT_EQ(message_of(&count, {3, 64}, Word{0}, false), "");
  EXPECT_EQ(result_[0], 192u);
  expect_race(message_of(&count, {3, 64}, Word{0}, true), "count block ");
}

TEST_F(Races, BlocksOneAfterTheOther_AreNotOrdered) {
  simt::Options options;
  options.watch_races = true;
  options.print_failures = false;
  options.resident_blocks = 1;
  simt::reset(options);
  DeviceBuffer<std::uint32_t> out(64);
  ASSERT_EQ(launch(&neighbours, {2, 64, sizeof(Words)}, nullptr, Between::block, out.data()), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  expect_race(simt::failure(), "writes 4 bytes");
  simt::reset();
}

TEST_F(Races, LaunchesOneAfterTheOther_AreOrdered) {
  simt::Options options;
  options.watch_races = true;
  simt::reset(options);
  DeviceBuffer<std::uint32_t> out(64);
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(launch(&neighbours, {1, 64, sizeof(Words)}, nullptr, Between::block, out.data()), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

}  // namespace
}  // namespace quern::testing

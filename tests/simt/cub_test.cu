// The algorithms of CUB that stand in here: the protocol of two calls, and results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cub/cub.cuh>
#include <numeric>
#include <vector>

#include "tests/simt/cuda_test.h"

namespace quern::testing {
namespace {

class Cub : public CudaTest {};

/// Makes both calls, with temporary storage of exactly what the first one says.
template <class F>
void run(F&& f) {
  std::size_t bytes = 0;
  ASSERT_EQ(f(nullptr, bytes), cudaSuccess);
  ASSERT_GT(bytes, 0u);
  DeviceBuffer<std::uint8_t> temporary(bytes);
  std::size_t less = bytes - 1;
  EXPECT_EQ(f(temporary.data(), less), cudaErrorInvalidValue);
  ASSERT_EQ(f(temporary.data(), bytes), cudaSuccess);
}

TEST_F(Cub, Scans_InPlaceAndNot) {
  std::vector<std::uint64_t> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 5u);
  DeviceBuffer<std::uint64_t> in(numbers), out(1000);
  std::vector<std::uint64_t> inclusive(1000), exclusive(1000);
  std::inclusive_scan(numbers.begin(), numbers.end(), inclusive.begin());
  std::exclusive_scan(numbers.begin(), numbers.end(), exclusive.begin(), std::uint64_t{0});
  run([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(temporary, bytes, in.data(), out.data(), 1000);
  });
  EXPECT_EQ(out.get(), inclusive);
  run([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(temporary, bytes, in.data(), in.data(), 1000);
  });
  EXPECT_EQ(in.get(), exclusive);
}

TEST_F(Cub, Reductions_OverNumbersAndOverNothing) {
  const std::vector<std::int32_t> numbers{5, -7, 22, 3};
  DeviceBuffer<std::int32_t> in(numbers), out(1);
  const auto get = [&](auto&& f, std::size_t count) {
    run([&](void* temporary, std::size_t& bytes) { return f(temporary, bytes, count); });
    return out.get()[0];
  };
  const auto sum = [&](void* t, std::size_t& bytes, std::size_t n) {
    return cub::DeviceReduce::Sum(t, bytes, in.data(), out.data(), n);
  };
  const auto least = [&](void* t, std::size_t& bytes, std::size_t n) {
    return cub::DeviceReduce::Min(t, bytes, in.data(), out.data(), n);
  };
  const auto most = [&](void* t, std::size_t& bytes, std::size_t n) {
    return cub::DeviceReduce::Max(t, bytes, in.data(), out.data(), n);
  };
  const auto bits = [&](void* t, std::size_t& bytes, std::size_t n) {
    return cub::DeviceReduce::Reduce(
        t, bytes, in.data(), out.data(), n, [](int a, int b) { return a | b; }, 64);
  };
  EXPECT_EQ(get(sum, 4), 23);
  EXPECT_EQ(get(least, 4), -7);
  EXPECT_EQ(get(most, 4), 22);
  EXPECT_EQ(get(bits, 1), 69);
  EXPECT_EQ(get(sum, 0), 0);
  EXPECT_EQ(get(bits, 0), 64);
}

TEST_F(Cub, WorkIsQueued_NothingBeforeTheStreamGetsThere) {
  Stream stream;
  DeviceBuffer<std::uint32_t> in(std::vector<std::uint32_t>(10, 1)), out(std::vector<std::uint32_t>{0});
  std::size_t bytes = 0;
  ASSERT_EQ(cub::DeviceReduce::Sum(nullptr, bytes, in.data(), out.data(), 10, stream), cudaSuccess);
  DeviceBuffer<std::uint8_t> temporary(bytes);
  ASSERT_EQ(cudaMemsetAsync(in.data(), 0, 40, stream), cudaSuccess);
  ASSERT_EQ(cub::DeviceReduce::Sum(temporary.data(), bytes, in.data(), out.data(), 10, stream), cudaSuccess);
  EXPECT_EQ(simt::counters().synchronizations, 2u);  // the copies of the buffers
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(out.get()[0], 0u);
}

}  // namespace
}  // namespace quern::testing

// find_range_async against the host's range and against a plain loop over keys: every type, awkward sizes and
// addresses.
#include <random>

#include "kernels/common/cuda/range_cuda.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/elements.h"
#include "libcompress/pipeline/range.h"
#include "tests/unit_cuda_metrics/device.h"
#include "tests/unit_cuda_metrics/device_arrays.h"

namespace quern {
namespace {

using kernels::RangeKeys;
using test::Array;
using test::DeviceBytes;
using test::DeviceResult;
using test::shape_of;

RangeKeys device_range(const Array& array, const std::vector<std::uint64_t>& fills, std::size_t offset,
                       unsigned max_ctas) {
  const DeviceBytes memory(array.bytes, offset);
  const DeviceResult<RangeKeys> result;
  EXPECT_EQ(kernels::find_range_async(element_of(array.dtype), memory.get(), array.elems(), test::fills_of(fills),
                                      result.get(), nullptr, max_ctas),
            cudaSuccess);
  return result.read();
}

/// The same from the definition, one element after the other.
template <class Traits>
RangeKeys plain_range(const Array& array, const std::vector<std::uint64_t>& fills) {
  RangeKeys keys;
  for (std::uint64_t i = 0; i < array.elems(); ++i) {
    const auto bits = static_cast<typename Traits::Bits>(array.at(i));
    if (!is_valid<Traits>(bits, fills)) continue;
    const std::uint64_t key = kernels::ordered_key<Traits>(Traits::key(bits));
    keys.complement_of_min = std::max(keys.complement_of_min, ~key);
    keys.max = std::max(keys.max, key);
    ++keys.valid;
  }
  return keys;
}

void expect_same_range(const Array& array, const std::vector<std::uint64_t>& fills, std::size_t offset,
                       unsigned max_ctas) {
  SCOPED_TRACE(testing::Message() << dtype_name(array.dtype) << ", " << array.elems() << " elements, " << fills.size()
                                  << " fills, offset " << offset << ", " << max_ctas << " CTAs");
  const RangeKeys got = device_range(array, fills, offset, max_ctas);
  Execution execution;
  const auto host = exact_range(array.view(), fills, RunnerHandle(execution).get());
  ASSERT_EQ(got.valid != 0, host.has_value());
  kernels::with_element(element_of(array.dtype), [&](auto traits) {
    using Traits = decltype(traits);
    const RangeKeys plain = plain_range<Traits>(array, fills);
    ASSERT_EQ(got.valid, plain.valid);
    ASSERT_EQ(got.complement_of_min, plain.complement_of_min);
    ASSERT_EQ(got.max, plain.max);
    if (got.valid == 0) return;
    const double min = Traits::value(Traits::from_key(kernels::min_key<Traits>(got)));
    const double max = Traits::value(Traits::from_key(kernels::max_key<Traits>(got)));
    // The host rounds 64-bit integers outwards.
    if (dtype_bytes(array.dtype) == 8 && is_integer(array.dtype)) {
      EXPECT_LE(host->range.min, min);
      EXPECT_GE(host->range.max, max);
    } else {
      EXPECT_EQ(min, host->range.min);
      EXPECT_EQ(max, host->range.max);
    }
  });
}

/// Any bits; every `rare`-th element a special or one of the fills.
Array random_array(DType dtype, std::uint64_t elems, const std::vector<std::uint64_t>& fills, unsigned rare,
                   std::mt19937_64& random) {
  Array array(dtype, shape_of({elems}));
  std::vector<std::uint64_t> odd = test::specials_of(dtype);
  odd.insert(odd.end(), fills.begin(), fills.end());
  for (std::uint64_t i = 0; i < elems; ++i) {
    const bool is_odd = !odd.empty() && random() % rare == 0;
    array.set(i, is_odd ? odd[random() % odd.size()] : random() >> random() % 64);
  }
  return array;
}

class RangeOfType : public test::OnDeviceForType {};
class Range : public test::OnDevice {};

TEST_P(RangeOfType, AwkwardSizes_AreTheHosts) {
  const DType dtype = GetParam();
  const std::uint64_t block = 65536 / dtype_bytes(dtype);
  for (const unsigned seed : {1u, 2u}) {
    SCOPED_TRACE(seed);
    start(seed);
    std::mt19937_64 random(seed);
    for (const std::uint64_t elems : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{31}, std::uint64_t{33},
                                      std::uint64_t{1000}, block - 1, block, block + 1, 2 * block + 17})
      expect_same_range(random_array(dtype, elems, {}, 50, random), {}, 0, kernels::kMaxArrayCtas);
  }
}

TEST_P(RangeOfType, AnyAddress_AreTheHosts) {
  const DType dtype = GetParam();
  start(3);
  std::mt19937_64 random(3);
  for (const std::size_t offset : {1u, 2u, 4u, 8u, 15u})
    for (const std::uint64_t elems : {7u, 333u, 5000u})
      expect_same_range(random_array(dtype, elems, {}, 50, random), {}, offset, kernels::kMaxArrayCtas);
}

TEST_P(RangeOfType, AnyNumberOfCtas_GivesTheSame) {
  const DType dtype = GetParam();
  start(4);
  std::mt19937_64 random(4);
  const Array array = random_array(dtype, 3 * 65536 / dtype_bytes(dtype) + 5, {}, 1000, random);
  for (const unsigned ctas : {1u, 2u, 3u, 7u}) expect_same_range(array, {}, 0, ctas);
}

TEST_P(RangeOfType, FillValues_DoNotCount) {
  const DType dtype = GetParam();
  start(5);
  std::mt19937_64 random(5);
  const std::uint64_t low =
      is_float(dtype) ? test::bits_near(dtype, -60000.0) : 0x8000000000000000u >> (64 - 8 * dtype_bytes(dtype));
  for (const std::vector<std::uint64_t>& fills :
       {std::vector<std::uint64_t>{0}, {low}, {0, low, ~std::uint64_t{0}}, {low, 5, 6, 7, 8, 9, 10, 11, 12, 13}})
    for (const std::uint64_t elems : {1u, 33u, 3000u})
      expect_same_range(random_array(dtype, elems, fills, 3, random), fills, elems % 5, kernels::kMaxArrayCtas);
}

TEST_P(RangeOfType, NothingValid_IsSaid) {
  const DType dtype = GetParam();
  start(6);
  Array array(dtype, shape_of({100}));
  for (std::uint64_t i = 0; i < 100; ++i) array.set(i, 5);
  expect_same_range(array, {5}, 0, kernels::kMaxArrayCtas);
  for (const std::uint64_t special : test::specials_of(dtype)) {
    for (std::uint64_t i = 0; i < 100; ++i) array.set(i, special);
    expect_same_range(array, {}, 0, kernels::kMaxArrayCtas);
    expect_same_range(array, {0}, 0, kernels::kMaxArrayCtas);
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, RangeOfType, testing::ValuesIn(test::kAllTypes), test::type_name);

TEST_F(Range, ACallThatIsCaptured_RunsAsOftenAsWanted) {
  start();
  const DeviceBytes memory(std::vector<std::uint8_t>(1000, 7));
  const DeviceResult<RangeKeys> result;
  test::run_captured(2, [&](cudaStream_t stream) {
    return kernels::find_range_async(kernels::Element::u8, memory.get(), 1000, {}, result.get(), stream);
  });
  EXPECT_EQ(result.read().valid, 1000u);
  EXPECT_EQ(result.read().max, 7u);
}

TEST_F(Range, BadArguments_AreRefused) {
  start();
  const DeviceResult<RangeKeys> result;
  EXPECT_EQ(kernels::find_range_async(static_cast<kernels::Element>(5), nullptr, 0, {}, result.get(), nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(kernels::find_range_async(kernels::Element::f32, nullptr, 0, {}, result.get(), nullptr, 0),
            cudaErrorInvalidValue);
  kernels::FillValues fills;
  EXPECT_FALSE(kernels::copy_fills(std::vector<std::uint64_t>(256), fills));
  EXPECT_EQ(fills.count, 0u);
  EXPECT_TRUE(kernels::copy_fills(std::vector<std::uint64_t>(255), fills));
  fills.count = 256;
  EXPECT_EQ(kernels::find_range_async(kernels::Element::f32, nullptr, 0, fills, result.get(), nullptr),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace quern

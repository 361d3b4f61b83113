// check_bound_async against check_bound on the host: every type, elements at and beside the bound, specials, fills.
#include <cfloat>
#include <random>

#include <quern/metrics.h>

#include "kernels/metrics/cuda/bound_check_cuda.h"
#include "tests/unit_cuda_metrics/device.h"
#include "tests/unit_cuda_metrics/device_arrays.h"

namespace quern {
namespace {

using kernels::CudaBoundCheck;
using test::Array;
using test::DeviceBytes;
using test::DeviceResult;
using test::shape_of;
using verifier::BoundRule;

struct Pair {
  Array x;
  Array y;
};

struct Call {
  std::size_t x_offset = 0;
  std::size_t y_offset = 0;
  unsigned max_ctas = kernels::kMaxArrayCtas;
};

EnforcedBound enforced(const verifier::Bound& bound) {
  switch (bound.rule) {
    case BoundRule::absolute: return {BoundKind::abs, bound.value};
    case BoundRule::relative: return {BoundKind::pwrel, bound.value};
    case BoundRule::lossless: break;
  }
  return {BoundKind::lossless, 0.0};
}

CudaBoundCheck device_check(const Pair& pair, const verifier::Bound& bound, const std::vector<std::uint64_t>& fills,
                            const Call& call = {}) {
  const DeviceBytes x(pair.x.bytes, call.x_offset);
  const DeviceBytes y(pair.y.bytes, call.y_offset);
  const DeviceResult<CudaBoundCheck> result;
  EXPECT_EQ(kernels::check_bound_async(element_of(pair.x.dtype), x.get(), y.get(), pair.x.elems(), bound,
                                       test::fills_of(fills), result.get(), nullptr, call.max_ctas),
            cudaSuccess);
  return result.read();
}

/// A device need not keep what is inside of a NaN that it makes wider.
void expect_same_value(double got, double expected) {
  EXPECT_EQ(std::isnan(got), std::isnan(expected));
  if (std::isnan(got)) return;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(expected));
}

/// Returns the host's number of violations.
std::uint64_t expect_same(const Pair& pair, const verifier::Bound& bound, const std::vector<std::uint64_t>& fills,
                          const Call& call = {}) {
  SCOPED_TRACE(testing::Message() << dtype_name(pair.x.dtype) << ", " << pair.x.elems() << " elements, bound "
                                  << static_cast<int>(bound.rule) << ' ' << bound.value << ", " << fills.size()
                                  << " fills, offsets " << call.x_offset << ' ' << call.y_offset << ", "
                                  << call.max_ctas << " CTAs");
  ValidityRule rule;
  rule.fill_bits.assign(fills.begin(), fills.end());
  const auto host = check_bound(pair.x.view(), pair.y.view(), enforced(bound), rule, {});
  EXPECT_TRUE(host.ok()) << host.status().text();
  const CudaBoundCheck got = device_check(pair, bound, fills, call);
  EXPECT_EQ(got.violations, host.value().violations);
  EXPECT_EQ(got.specials_lost, host.value().specials_lost);
  const Violation first = host.value().first.empty() ? Violation{} : host.value().first.front();
  EXPECT_EQ(got.first_index, first.index);
  expect_same_value(got.first.original, first.original);
  expect_same_value(got.first.reconstructed, first.reconstructed);
  EXPECT_EQ(got.first.error, first.error);
  EXPECT_EQ(got.first.ulps, first.ulps);
  return host.value().violations;
}

/// A value that has its bound's multiple beside it, in the type's range.
double some_value(DType dtype, std::mt19937_64& random) {
  const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
  switch (dtype) {
    case DType::i8: return 100 * (2 * unit - 1);
    case DType::u8: return 20 + 200 * unit;
    case DType::u16:
    case DType::u32:
    case DType::u64: return 30000 + 20000 * unit;
    default: return std::ldexp(2 * unit - 1, static_cast<int>(random() % 8));
  }
}

/// Most elements lie at 0 to 2 bounds from the original, some beside by a few steps, some anywhere; every `rare`-th
/// original is a special or a fill, and every fourth of their reconstructions another.
Pair make_pair(DType dtype, std::uint64_t elems, const verifier::Bound& bound, const std::vector<std::uint64_t>& fills,
               unsigned rare, double largest, std::mt19937_64& random) {
  Pair pair{Array(dtype, shape_of({elems})), Array(dtype, shape_of({elems}))};
  std::vector<std::uint64_t> odd = test::specials_of(dtype);
  odd.insert(odd.end(), fills.begin(), fills.end());
  constexpr double kMultiples[] = {0.0, 0.25, 0.999, 1.0, 1.0, 1.001, 2.0};
  for (std::uint64_t i = 0; i < elems; ++i) {
    if (!odd.empty() && random() % rare == 0) {
      const std::uint64_t special = odd[random() % odd.size()];
      pair.x.set(i, special);
      pair.y.set(i, random() % 4 != 0 ? special : odd[random() % odd.size()]);
      continue;
    }
    const double x = some_value(dtype, random);
    const double step = bound.rule == BoundRule::relative ? std::fabs(x) * bound.value : bound.value;
    double multiple = kMultiples[random() % 7] * (random() % 2 == 0 ? 1 : -1);
    if (std::fabs(multiple) > largest) multiple = 0.5;
    pair.x.set(i, test::bits_near(dtype, x));
    pair.y.set(i, test::bits_near(dtype, x + multiple * step));
    if (largest >= 2 && random() % 4 == 0) pair.y.set(i, pair.y.at(i) + random() % 3 - 1);
    if (largest >= 2 && random() % 64 == 0) pair.y.set(i, random());
  }
  return pair;
}

std::vector<verifier::Bound> bounds_for(DType dtype) {
  if (is_integer(dtype))
    return {{BoundRule::lossless, 0}, {BoundRule::absolute, 0}, {BoundRule::absolute, 2.5}, {BoundRule::absolute, 10}};
  return {{BoundRule::lossless, 0},     {BoundRule::absolute, 0},     {BoundRule::absolute, 0.125},
          {BoundRule::absolute, 0.01},  {BoundRule::absolute, 1e-30}, {BoundRule::relative, 0.25},
          {BoundRule::relative, 0.001}, {BoundRule::relative, 0}};
}

class CheckBoundOfType : public test::OnDeviceForType {};
class CheckBound : public test::OnDevice {};

TEST_P(CheckBoundOfType, ElementsAroundTheBound_AreCheckedAsOnTheHost) {
  const DType dtype = GetParam();
  const std::uint64_t block = 65536 / dtype_bytes(dtype);
  for (const unsigned seed : {1u, 2u}) {
    SCOPED_TRACE(seed);
    start(seed);
    std::mt19937_64 random(seed);
    for (const verifier::Bound& bound : bounds_for(dtype))
      for (const std::uint64_t elems :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{31}, std::uint64_t{33}, std::uint64_t{2000}, block + 3})
        expect_same(make_pair(dtype, elems, bound, {}, 30, 2, random), bound, {});
  }
}

TEST_P(CheckBoundOfType, ArraysThatKeepTheBound_HaveNoViolation) {
  const DType dtype = GetParam();
  start(3);
  std::mt19937_64 random(3);
  // Rounding to the type takes its part.
  const verifier::Bound bound{BoundRule::absolute, is_integer(dtype) ? 10.0 : 2.0};
  for (const std::uint64_t elems : {40u, 70000u / static_cast<unsigned>(dtype_bytes(dtype))})
    EXPECT_EQ(expect_same(make_pair(dtype, elems, bound, {}, 1u << 30, 0.6, random), bound, {}), 0u);
}

TEST_P(CheckBoundOfType, AnyAddressAndGrid_IsTheHosts) {
  const DType dtype = GetParam();
  start(4);
  std::mt19937_64 random(4);
  const verifier::Bound bound{BoundRule::absolute, is_integer(dtype) ? 3.0 : 0.01};
  for (const std::size_t x_offset : {0u, 1u, 8u})
    for (const std::size_t y_offset : {0u, 2u, 4u, 7u})
      expect_same(make_pair(dtype, 777, bound, {}, 30, 2, random), bound, {}, {x_offset, y_offset});
  const Pair pair = make_pair(dtype, 3 * 65536 / dtype_bytes(dtype) + 5, bound, {}, 1000, 2, random);
  for (const unsigned ctas : {1u, 3u}) expect_same(pair, bound, {}, {0, 0, ctas});
}

TEST_P(CheckBoundOfType, FillValues_MustComeBack) {
  const DType dtype = GetParam();
  start(5);
  std::mt19937_64 random(5);
  const std::uint64_t one = test::bits_near(dtype, 100.0);
  const verifier::Bound bound{BoundRule::absolute, is_integer(dtype) ? 3.0 : 0.01};
  for (const std::vector<std::uint64_t>& fills :
       {std::vector<std::uint64_t>{0}, {one}, {0, one, one + 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, one}})
    for (const std::uint64_t elems : {33u, 3000u})
      EXPECT_GT(expect_same(make_pair(dtype, elems, bound, fills, 3, 2, random), bound, fills), 0u);
}

TEST_P(CheckBoundOfType, LastElement_IsFoundWhereverItLies) {
  const DType dtype = GetParam();
  start(6);
  for (const std::uint64_t elems : {1u, 15u, 16u, 17u, 255u, 4096u, 9999u}) {
    Pair pair{Array(dtype, shape_of({elems})), Array(dtype, shape_of({elems}))};
    pair.y.set(elems - 1, 1);
    EXPECT_EQ(expect_same(pair, {BoundRule::lossless, 0}, {}), 1u);
    EXPECT_EQ(device_check(pair, {BoundRule::lossless, 0}, {}).first_index, elems - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, CheckBoundOfType, testing::ValuesIn(test::kAllTypes), test::type_name);

template <class T>
Pair pair_of(DType dtype, T x, T y) {
  Pair pair{Array(dtype, shape_of({1})), Array(dtype, shape_of({1}))};
  std::memcpy(pair.x.bytes.data(), &x, sizeof x);
  std::memcpy(pair.y.bytes.data(), &y, sizeof y);
  return pair;
}

TEST_F(CheckBound, TiesThatRoundingHides_AreDecided) {
  start();
  // 1 + 2^-80 rounds to 1 in binary64.
  EXPECT_EQ(expect_same(pair_of(DType::f64, 1.0, -0x1p-80), {BoundRule::absolute, 1.0}, {}), 1u);
  EXPECT_EQ(expect_same(pair_of(DType::f64, 1.0, 0x1p-80), {BoundRule::absolute, 1.0}, {}), 0u);
  EXPECT_EQ(expect_same(pair_of(DType::f32, FLT_MAX, -0x1p-149f), {BoundRule::absolute, FLT_MAX}, {}), 1u);
  EXPECT_EQ(expect_same(pair_of(DType::f32, FLT_MAX, 0x1p-149f), {BoundRule::absolute, FLT_MAX}, {}), 0u);
  EXPECT_EQ(expect_same(pair_of(DType::f64, DBL_MAX, -DBL_MAX), {BoundRule::absolute, DBL_MAX}, {}), 1u);
  EXPECT_EQ(expect_same(pair_of(DType::f64, 4.0, 5.0), {BoundRule::relative, 0.25}, {}), 0u);
  EXPECT_EQ(expect_same(pair_of(DType::f64, 4.0, std::nextafter(5.0, 6.0)), {BoundRule::relative, 0.25}, {}), 1u);
  EXPECT_EQ(expect_same(pair_of(DType::f64, 0x1p-1074, 0x1p-1073), {BoundRule::relative, 0.999}, {}), 1u);
}

TEST_F(CheckBound, SixtyFourBitIntegers_AreExact) {
  start();
  const auto most = [](double value) { return verifier::Bound{BoundRule::absolute, value}; };
  EXPECT_EQ(expect_same(pair_of<std::int64_t>(DType::i64, INT64_MAX, INT64_MAX - 1), most(1.0), {}), 0u);
  EXPECT_EQ(expect_same(pair_of<std::int64_t>(DType::i64, INT64_MAX, INT64_MAX - 2), most(1.999), {}), 1u);
  EXPECT_EQ(expect_same(pair_of<std::int64_t>(DType::i64, INT64_MIN, INT64_MAX), most(0x1.fffffffffffffp63), {}), 1u);
  EXPECT_EQ(expect_same(pair_of<std::int64_t>(DType::i64, INT64_MIN, INT64_MAX), most(0x1p64), {}), 0u);
  EXPECT_EQ(expect_same(pair_of<std::uint64_t>(DType::u64, UINT64_MAX, 0), most(1e300), {}), 0u);
  EXPECT_EQ(expect_same(pair_of<std::uint32_t>(DType::u32, UINT32_MAX, 0), most(0x1p32 - 2), {}), 1u);
  EXPECT_EQ(expect_same(pair_of<std::uint32_t>(DType::u32, UINT32_MAX, 0), most(0x1p32 - 1), {}), 0u);
}

TEST_F(CheckBound, ACallThatIsCaptured_RunsAsOftenAsWanted) {
  start();
  const DeviceBytes x(std::vector<std::uint8_t>(1000, 7));
  const DeviceBytes y(std::vector<std::uint8_t>(1000, 9));
  const DeviceResult<CudaBoundCheck> result;
  test::run_captured(2, [&](cudaStream_t stream) {
    return kernels::check_bound_async(kernels::Element::u8, x.get(), y.get(), 1000, {BoundRule::absolute, 1.0}, {},
                                      result.get(), stream);
  });
  EXPECT_EQ(result.read().violations, 1000u);
  EXPECT_EQ(result.read().first.error, 2.0);
}

TEST_F(CheckBound, BadArguments_AreRefused) {
  start();
  const DeviceResult<CudaBoundCheck> result;
  const auto check = [&](kernels::Element element, const verifier::Bound& bound, unsigned ctas = 1) {
    return kernels::check_bound_async(element, nullptr, nullptr, 0, bound, {}, result.get(), nullptr, ctas);
  };
  EXPECT_EQ(check(kernels::Element::f32, {BoundRule::absolute, 1.0}), cudaSuccess);
  EXPECT_EQ(check(kernels::Element::f32, {BoundRule::absolute, 1.0}, 0), cudaErrorInvalidValue);
  EXPECT_EQ(check(kernels::Element::f32, {BoundRule::absolute, -1.0}), cudaErrorInvalidValue);
  EXPECT_EQ(check(kernels::Element::f32, {BoundRule::relative, 1.0}), cudaErrorInvalidValue);
  EXPECT_EQ(check(kernels::Element::i32, {BoundRule::relative, 0.5}), cudaErrorInvalidValue);
  EXPECT_EQ(check(static_cast<kernels::Element>(0), {BoundRule::lossless, 0}), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace quern

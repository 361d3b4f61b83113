// check_bound on every type: what must pass, what must not, and the same answer for any number of threads.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <random>

#include <quern/metrics.h>

#include "tests/unit_metrics/arrays.h"
#include "tests/unit_metrics/big_number.h"

namespace quern {
namespace {

using test::view;

const EnforcedBound kLossless{BoundKind::lossless, 0.0};
EnforcedBound absolute(double value) { return {BoundKind::abs, value}; }
EnforcedBound relative(double value) { return {BoundKind::pwrel, value}; }

BoundCheck check(const ArrayView& x, const ArrayView& y, const EnforcedBound& bound, const ValidityRule& rule = {},
                 std::size_t threads = 1) {
  Execution execution;
  execution.threads = threads;
  auto result = check_bound(x, y, bound, rule, execution);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.value();
}

template <class T>
std::uint64_t violations(T x, T y, const EnforcedBound& bound, DType dtype = test::dtype_of<T>()) {
  const std::vector<T> a{x};
  const std::vector<T> b{y};
  return check(view(a, dtype), view(b, dtype), bound).violations;
}

TEST(CheckBound, FloatAtTheBoundAndOneStepBeside_IsDecidedExactly) {
  EXPECT_EQ(violations(1.0f, 1.5f, absolute(0.5)), 0u);
  EXPECT_EQ(violations(1.0f, 1.5f, absolute(std::nextafter(0.5, 0.0))), 1u);
  EXPECT_EQ(violations(1.0f, std::nextafter(1.5f, 2.0f), absolute(0.5)), 1u);
  EXPECT_EQ(violations(FLT_MAX, -FLT_MAX, absolute(2.0 * FLT_MAX)), 0u);
  EXPECT_EQ(violations(FLT_MAX, -FLT_MAX, absolute(std::nextafter(2.0 * FLT_MAX, 0.0))), 1u);
  // FLT_MAX + 2^-149 rounds to FLT_MAX in binary64.
  EXPECT_EQ(violations(FLT_MAX, -1e-45f, absolute(FLT_MAX)), 1u);
  EXPECT_EQ(violations(FLT_MAX, 1e-45f, absolute(FLT_MAX)), 0u);
  EXPECT_EQ(violations(1e-45f, 0.0f, absolute(0x1p-149)), 0u);
  EXPECT_EQ(violations(1e-45f, 0.0f, absolute(0x1p-150)), 1u);
}

TEST(CheckBound, DoubleWhoseDifferenceOverflows_IsAViolation) {
  EXPECT_EQ(violations(DBL_MAX, -DBL_MAX, absolute(DBL_MAX)), 1u);
  EXPECT_EQ(violations(DBL_MAX, -DBL_MAX, relative(0.5)), 1u);
}

TEST(CheckBound, SignsOfZero_MustComeBack) {
  EXPECT_EQ(violations(-0.0f, -0.0f, absolute(1.0)), 0u);
  EXPECT_EQ(violations(-0.0f, 0.0f, absolute(1.0)), 1u);
  EXPECT_EQ(violations(-0.0f, -0.25f, absolute(1.0)), 1u);
  EXPECT_EQ(violations(0.0f, -0.0f, absolute(1.0)), 1u);
  EXPECT_EQ(violations(0.0f, 0.25f, absolute(1.0)), 0u);
  EXPECT_EQ(violations(0.25f, -0.0f, absolute(1.0)), 0u);
  EXPECT_EQ(violations(0.0, -0.0, relative(0.5)), 1u);
  EXPECT_EQ(violations(0.0, 1e-300, relative(0.5)), 1u);
}

TEST(CheckBound, NonFinite_MustComeBackBitForBit) {
  const float inf = HUGE_VALF;
  EXPECT_EQ(violations(inf, inf, absolute(1.0)), 0u);
  EXPECT_EQ(violations(inf, -inf, absolute(1.0)), 1u);
  EXPECT_EQ(violations(inf, FLT_MAX, absolute(1.0)), 1u);
  EXPECT_EQ(violations(FLT_MAX, inf, absolute(1e300)), 1u);
  EXPECT_EQ(violations(1.0f, std::nanf(""), absolute(1e300)), 1u);
  EXPECT_EQ(violations(1.0f, inf, relative(0.5)), 1u);
  EXPECT_EQ(violations<std::uint32_t>(0x7fc00001, 0x7fc00001, absolute(1.0), DType::f32), 0u);
  EXPECT_EQ(violations<std::uint32_t>(0x7fc00001, 0x7fc00002, absolute(1.0), DType::f32), 1u);
  EXPECT_EQ(violations<std::uint16_t>(0x7e01, 0x7e00, absolute(1.0), DType::f16), 1u);
  EXPECT_EQ(violations<std::uint16_t>(0x7fc1, 0x7fc0, absolute(1.0), DType::bf16), 1u);
}

TEST(CheckBound, SpecialsLost_AreCountedApart) {
  const std::vector<float> x{1.0f, HUGE_VALF, -0.0f, 0.0f, 2.0f, -999.0f};
  const std::vector<float> y{3.0f, 1.0f, 0.0f, -0.0f, 2.0f, -998.75f};
  const ValidityRule rule{{std::bit_cast<std::uint32_t>(-999.0f)}};
  const BoundCheck found = check(view(x), view(y), absolute(1.0), rule);
  EXPECT_EQ(found.violations, 5u);
  EXPECT_EQ(found.specials_lost, 4u);
  ASSERT_EQ(found.first.size(), 5u);
  EXPECT_EQ(found.first[0].index, 0u);
  EXPECT_EQ(found.first[0].error, 2.0);
  EXPECT_EQ(found.first[0].original, 1.0);
  EXPECT_EQ(found.first[0].reconstructed, 3.0);
  EXPECT_EQ(found.first[0].ulps, 0xc00000u);
  EXPECT_EQ(found.first[1].error, HUGE_VAL);
  EXPECT_EQ(found.first[4].index, 5u);
  EXPECT_EQ(check(view(x), view(y), absolute(1.0)).violations, 4u);
}

TEST(CheckBound, FillOfZero_CoversBothSigns) {
  const std::vector<double> x{0.0, -0.0, 0.0, 1.0};
  const std::vector<double> y{0.0, -0.0, 0.5, 1.5};
  EXPECT_EQ(check(view(x), view(y), absolute(1.0), {{0}}).violations, 1u);
  EXPECT_EQ(check(view(x), view(y), absolute(1.0), {{UINT64_C(1) << 63}}).violations, 1u);
}

TEST(CheckBound, IntegerFill_MustComeBack) {
  const std::vector<std::int16_t> x{-999, 5};
  const std::vector<std::int16_t> y{-998, 6};
  EXPECT_EQ(check(view(x), view(y), absolute(1.0)).violations, 0u);
  const BoundCheck found = check(view(x), view(y), absolute(1.0), {{0xfc19}});
  EXPECT_EQ(found.violations, 1u);
  EXPECT_EQ(found.specials_lost, 1u);
}

TEST(CheckBound, Lossless_MeansEveryBit) {
  EXPECT_EQ(violations(1.0, 1.0, kLossless), 0u);
  EXPECT_EQ(violations(1.0, std::nextafter(1.0, 2.0), kLossless), 1u);
  EXPECT_EQ(violations(0.0f, -0.0f, absolute(0.0)), 1u);
  EXPECT_EQ(violations<std::uint8_t>(7, 8, kLossless), 1u);
  EXPECT_EQ(violations<std::int64_t>(INT64_MAX, INT64_MAX - 1, absolute(0.0)), 1u);
}

TEST(CheckBound, SixtyFourBitIntegers_AreComparedExactly) {
  EXPECT_EQ(violations<std::int64_t>(INT64_MAX, INT64_MAX - 1, absolute(1.0)), 0u);
  EXPECT_EQ(violations<std::int64_t>(INT64_MAX, INT64_MAX - 2, absolute(1.999)), 1u);
  EXPECT_EQ(violations<std::int64_t>(INT64_MIN, INT64_MAX, absolute(0x1.fffffffffffffp63)), 1u);
  EXPECT_EQ(violations<std::int64_t>(INT64_MIN, INT64_MAX, absolute(0x1p64)), 0u);
  EXPECT_EQ(violations<std::uint64_t>(0, UINT64_MAX, absolute(1e300)), 0u);
  EXPECT_EQ(violations<std::uint64_t>(UINT64_MAX, UINT64_MAX - 1, absolute(0.5)), 1u);
}

template <class T>
class CheckIntegers : public testing::Test {};
using Integers = testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                                std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(CheckIntegers, Integers);

TYPED_TEST(CheckIntegers, RandomPairs_AgreeWith128Bits) {
  const unsigned seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const int bits = 8 * sizeof(TypeParam);
  for (int i = 0; i < 300; ++i) {
    const auto x = static_cast<TypeParam>(random());
    const auto y = i % 2 == 0 ? static_cast<TypeParam>(random()) : static_cast<TypeParam>(x + random() % 5);
    __extension__ using Wide = __int128;
    Wide distance = Wide{x} - Wide{y};
    if (distance < 0) distance = -distance;
    for (const double bound : {0.5, 1.0, 2.5, 3.0, std::ldexp(0.7, bits), std::ldexp(1.0, bits)}) {
      ASSERT_EQ(violations(x, y, absolute(bound)), distance <= static_cast<Wide>(bound) ? 0u : 1u)
          << +x << ' ' << +y << ' ' << bound;
    }
  }
}

/// Random bit patterns with neighbours a few steps away, checked element by element with big integers.
template <class Bits>
void compare_floats_with_reference(DType dtype, Bits sign, double (*value)(Bits)) {
  const unsigned seed = 11;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::vector<Bits> x(3000);
  std::vector<Bits> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<Bits>(random());
    y[i] = static_cast<Bits>(x[i] + random() % 5 - 2);
  }
  for (std::size_t pick = 0; pick < 60; ++pick) {
    const std::size_t at = random() % x.size();
    const double tie = std::fabs(value(x[at]) - value(y[at]));
    if (!std::isfinite(tie) || tie == 0) continue;
    const double ratio = tie / std::fabs(value(x[at]));
    for (const EnforcedBound bound : {absolute(tie), relative(ratio < 1 ? ratio : 0.5)}) {
      std::uint64_t expected = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double a = value(x[i]);
        const double b = value(y[i]);
        if (x[i] == y[i]) continue;
        const bool zero_sign = x[i] == sign || (x[i] == 0 && y[i] == sign);
        const bool kept = !zero_sign && std::isfinite(a) && std::isfinite(b) &&
                          (bound.kind == BoundKind::abs ? test::big_within_absolute(a, b, bound.value)
                                                        : test::big_within_relative(a, b, bound.value));
        expected += kept ? 0 : 1;
      }
      ASSERT_EQ(check(view(x, dtype), view(y, dtype), bound).violations, expected) << bound.value;
    }
  }
}

double f16_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return (bits & 0x3ff) != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(bits & 0x3ff, -24) : std::ldexp(1024 + (bits & 0x3ff), exponent - 25));
}

TEST(CheckBound, RandomFloatsOfEveryType_AgreeWithBigIntegers) {
  compare_floats_with_reference<std::uint16_t>(DType::f16, 0x8000, f16_value);
  compare_floats_with_reference<std::uint16_t>(DType::bf16, 0x8000, [](std::uint16_t bits) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  });
  compare_floats_with_reference<std::uint32_t>(DType::f32, UINT32_C(1) << 31, [](std::uint32_t bits) {
    return static_cast<double>(std::bit_cast<float>(bits));
  });
  compare_floats_with_reference<std::uint64_t>(DType::f64, UINT64_C(1) << 63,
                                               [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
}

TEST(CheckBound, OneBadElementAnywhere_IsFoundWithItsIndex) {
  const std::vector<float> x(2000, 1.0f);
  for (const std::size_t at : {0u, 1u, 255u, 256u, 1023u, 1999u}) {
    std::vector<float> y(x.size(), 1.25f);
    y[at] = 1.75f;
    const BoundCheck found = check(view(x), view(y), absolute(0.5));
    ASSERT_EQ(found.first.size(), 1u);
    EXPECT_EQ(found.first[0].index, at);
  }
}

TEST(CheckBound, ManyViolations_FirstSixteenInOrderForAnyNumberOfThreads) {
  std::vector<float> x(300000, 1.0f);
  std::vector<float> y(x.size(), 1.0f);
  Vector<std::uint64_t> bad;
  for (std::uint64_t i = 65000; i < x.size(); i += 97) {
    y[i] = 3.0f;
    bad.push_back(i);
  }
  for (const std::size_t threads : {1u, 2u, 5u}) {
    const BoundCheck found = check(view(x), view(y), absolute(0.5), {}, threads);
    EXPECT_EQ(found.violations, bad.size());
    ASSERT_EQ(found.first.size(), 16u);
    for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(found.first[i].index, bad[i]);
  }
}

TEST(CheckBound, UnalignedMemory_IsRead) {
  Vector<std::uint8_t> bytes(9);
  const double value = 1.0;
  std::memcpy(bytes.data() + 1, &value, sizeof(value));
  const ArrayView odd{bytes.data() + 1, DType::f64, test::shape_of({1})};
  const std::vector<double> other{1.25};
  EXPECT_EQ(check(odd, view(other), absolute(0.25)).violations, 0u);
}

TEST(CheckBound, NoElements_NoViolations) {
  const ArrayView nothing{nullptr, DType::f32, test::shape_of({0})};
  EXPECT_EQ(check(nothing, nothing, absolute(1.0)).violations, 0u);
}

TEST(CheckBound, BadArguments_AreRefused) {
  const std::vector<float> x{1.0f, 2.0f};
  const std::vector<double> d{1.0, 2.0};
  const std::vector<float> z{1.0f};
  const Execution execution;
  const auto code = [&](const ArrayView& a, const ArrayView& b, const EnforcedBound& bound) {
    return check_bound(a, b, bound, {}, execution).status().code();
  };
  EXPECT_EQ(code(view(x), view(d), absolute(1.0)), StatusCode::invalid_argument);
  EXPECT_EQ(code(view(x), view(z), absolute(1.0)), StatusCode::invalid_shape);
  EXPECT_EQ(code(view(x), {nullptr, DType::f32, test::shape_of({2})}, absolute(1.0)), StatusCode::invalid_argument);
  EXPECT_EQ(code(view(x), view(x), absolute(std::nan(""))), StatusCode::invalid_bound);
  EXPECT_EQ(code(view(x), view(x), absolute(-1.0)), StatusCode::invalid_bound);
  EXPECT_EQ(code(view(x), view(x), {BoundKind::rel, 0.1}), StatusCode::invalid_bound);
  EXPECT_EQ(code(view(x), view(x), relative(1.0)), StatusCode::invalid_bound);
}

TEST(CheckBound, ProgressCallbackThatSaysNo_Cancels) {
  const std::vector<float> x(10, 1.0f);
  Execution execution;
  execution.progress = [](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(done, total);
    return false;
  };
  EXPECT_EQ(check_bound(view(x), view(x), absolute(1.0), {}, execution).status().code(), StatusCode::cancelled);
}

}  // namespace
}  // namespace quern

// The exact inequalities against big integers, on values chosen to sit at and beside ties.
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <random>

#include "kernels/metrics/exact.h"
#include "tests/unit_metrics/big_number.h"

namespace quern::verifier {
namespace {

constexpr double kTiny = 0x1p-1074;
const double kCorners[] = {0.0,         kTiny,       3 * kTiny, 0x1p-1022, 0x1.fffffffffffffp-1023,
                           0x1p-149,    1e-300,      0x1p-60,   0.1,       0.5,
                           1 - 0x1p-53, 1.0,         1 + 1e-9,  FLT_MAX,   0x1p53,
                           1e300,       DBL_MAX / 2, DBL_MAX};

TEST(WithinAbsolute, Corners_AgreeWithBigIntegers) {
  for (const double x : kCorners)
    for (const double y : kCorners)
      for (const double sign : {1.0, -1.0}) {
        const double rounded = std::fabs(x - sign * y);
        for (const double bound : {rounded, std::nextafter(rounded, 0.0), std::nextafter(rounded, DBL_MAX), x, y}) {
          if (!std::isfinite(bound)) continue;
          EXPECT_EQ(within_absolute(x, sign * y, bound), test::big_within_absolute(x, sign * y, bound))
              << std::hexfloat << x << ' ' << sign * y << ' ' << bound;
        }
      }
}

TEST(WithinAbsolute, TieHidesLowPart_IsDecidedByIt) {
  EXPECT_FALSE(within_absolute(1.0, -0x1p-80, 1.0));
  EXPECT_TRUE(within_absolute(1.0, 0x1p-80, 1.0));
  EXPECT_FALSE(within_absolute(-0x1p-80, 1.0, 1.0));
  EXPECT_TRUE(within_absolute(0x1p-80, 1.0, 1.0));
  EXPECT_FALSE(within_absolute(DBL_MAX, -kTiny, DBL_MAX));
  EXPECT_FALSE(within_absolute(DBL_MAX, -DBL_MAX, DBL_MAX));
}

TEST(WithinAbsolute, RandomBitsNearTies_AgreeWithBigIntegers) {
  const unsigned seed = 20240611;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int yes = 0;
  int no = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 140) - 120);
    const double y = std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 140) - 120) *
                     (random() % 2 == 0 ? 1 : -1);
    const double bound = std::fabs(x - y);
    const bool expected = test::big_within_absolute(x, y, bound);
    (expected ? yes : no)++;
    ASSERT_EQ(within_absolute(x, y, bound), expected) << std::hexfloat << x << ' ' << y;
  }
  EXPECT_GT(yes, 1000);
  EXPECT_GT(no, 1000);
}

TEST(WithinRelative, Corners_AgreeWithBigIntegers) {
  for (const double x : kCorners)
    for (const double ratio : {0.0, kTiny, 0x1p-1022, 1e-200, 0x1p-53, 1e-3, 0.1, 0.5, 1 - 0x1p-53})
      for (const double sign : {1.0, -1.0}) {
        const double edge = sign * (x - ratio * x);
        const double other_edge = sign * (x + ratio * x);
        for (const double y : {edge, std::nextafter(edge, -DBL_MAX), std::nextafter(edge, DBL_MAX), other_edge,
                               std::nextafter(other_edge, -DBL_MAX), std::nextafter(other_edge, DBL_MAX), -sign * x,
                               0.0, -0.0, kTiny, DBL_MAX}) {
          if (!std::isfinite(y)) continue;
          EXPECT_EQ(within_relative(sign * x, y, ratio), test::big_within_relative(sign * x, y, ratio))
              << std::hexfloat << sign * x << ' ' << y << ' ' << ratio;
        }
      }
}

TEST(WithinRelative, ExactProducts_AreAllowedAndOneStepBeyondIsNot) {
  EXPECT_TRUE(within_relative(4.0, 5.0, 0.25));
  EXPECT_FALSE(within_relative(4.0, std::nextafter(5.0, 6.0), 0.25));
  EXPECT_TRUE(within_relative(-4.0, -3.0, 0.25));
  EXPECT_FALSE(within_relative(-4.0, std::nextafter(-3.0, 0.0), 0.25));
  EXPECT_TRUE(within_relative(0.0, -0.0, 0.5));
  EXPECT_FALSE(within_relative(0.0, kTiny, 0.5));
  EXPECT_FALSE(within_relative(kTiny, 2 * kTiny, 0.999));
  // The distance 1 + 2^-1074 rounds to the product 1.
  EXPECT_TRUE(within_relative(2.0, 1.0, 0.5));
  EXPECT_FALSE(within_relative(1e300, -kTiny, 1 - 0x1p-53));
}

TEST(WithinRelative, RandomBitsNearTies_AgreeWithBigIntegers) {
  const unsigned seed = 20240612;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int yes = 0;
  int no = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 2000) - 1070);
    const double ratio = std::ldexp(static_cast<double>((random() >> 11) | 1), -53 - static_cast<int>(random() % 50));
    double y = x + (random() % 2 == 0 ? 1 : -1) * ratio * x;
    for (std::uint64_t steps = random() % 3; steps > 0; --steps) y = std::nextafter(y, x);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const bool expected = test::big_within_relative(x, y, ratio);
    (expected ? yes : no)++;
    ASSERT_EQ(within_relative(x, y, ratio), expected) << std::hexfloat << x << ' ' << y << ' ' << ratio;
  }
  EXPECT_GT(yes, 1000);
  EXPECT_GT(no, 1000);
}

TEST(WithinRelative, RatioOneStepAroundTheError_AgreesWithBigIntegers) {
  const unsigned seed = 20240613;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int ties = 0;
  for (int i = 0; i < 20000; ++i) {
    // Short mantissas make exact ties between the product and the distance common.
    const double x = std::ldexp(static_cast<double>(random() % 4096 + 1), static_cast<int>(random() % 2000) - 1060);
    const double ratio = static_cast<double>(random() % 4096) / 4096;
    const double y = x - ratio * x;
    for (const double near : {ratio, std::nextafter(ratio, 0.0), std::nextafter(ratio, 1.0)}) {
      if (near >= 1) continue;
      const bool expected = test::big_within_relative(x, y, near);
      ASSERT_EQ(within_relative(x, y, near), expected) << std::hexfloat << x << ' ' << y << ' ' << near;
      if (near == ratio && expected) ++ties;
    }
  }
  EXPECT_GT(ties, 1000);
}

TEST(IntegerLimit, IsTheFloorAndSaturates) {
  EXPECT_EQ(integer_limit(0.0), 0u);
  EXPECT_EQ(integer_limit(0.999), 0u);
  EXPECT_EQ(integer_limit(3.0), 3u);
  EXPECT_EQ(integer_limit(3.999), 3u);
  EXPECT_EQ(integer_limit(0x1p63), UINT64_C(1) << 63);
  EXPECT_EQ(integer_limit(0x1.fffffffffffffp63), UINT64_C(0xfffffffffffff800));
  EXPECT_EQ(integer_limit(0x1p64), UINT64_MAX);
  EXPECT_EQ(integer_limit(1e300), UINT64_MAX);
}

}  // namespace
}  // namespace quern::verifier

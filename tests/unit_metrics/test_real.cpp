// Steps in the exponent against the standard library, and the error of a product against a fused multiply-add.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <random>

#include "kernels/metrics/exact.h"
#include "kernels/metrics/real.h"

namespace quern::verifier {
namespace {

constexpr double kTiny = 0x1p-1074;

std::vector<double> numbers(unsigned seed) {
  std::vector<double> all{0.0, kTiny, 3 * kTiny, 0x1p-1022, 0x1.fffffffffffffp-1023, 1.0, 1 - 0x1p-53, 0.1, DBL_MAX};
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const double x = std::bit_cast<double>(random());
    if (std::isfinite(x)) all.push_back(std::fabs(x));
  }
  for (int i = 0; i < 200; ++i) all.push_back(std::bit_cast<double>(random() >> (12 + random() % 52)));  // denormal
  const std::size_t positive = all.size();
  for (std::size_t i = 0; i < positive; ++i) all.push_back(-all[i]);
  return all;
}

TEST(Split, AnyNumber_AgreesWithTheStandardLibrary) {
  for (const double x : numbers(1)) {
    int exponent = 0;
    const double factor = std::frexp(x, &exponent);
    const Scaled parts = split(x);
    ASSERT_EQ(parts.factor, factor) << std::hexfloat << x;
    ASSERT_EQ(parts.exponent, exponent) << std::hexfloat << x;
  }
}

TEST(Scale, AnyNumberAndPower_AgreesWithTheStandardLibrary) {
  std::mt19937_64 random(2);
  for (const double x : numbers(2))
    for (const int n : {0, 1, -1, 53, -53, 1023, -1022, -1074, 2098, -2098, 100000, -100000, INT_MAX, INT_MIN,
                        static_cast<int>(random() % 4400) - 2200, static_cast<int>(random() % 200) - 1100}) {
      const double expected = std::ldexp(x, n);
      ASSERT_EQ(scale(x, n), expected) << std::hexfloat << x << ' ' << std::dec << n;
      ASSERT_EQ(std::signbit(scale(x, n)), std::signbit(expected));
    }
  EXPECT_EQ(scale(kInfinity, -5), kInfinity);
  EXPECT_TRUE(std::isnan(scale(std::nan(""), 5)));
}

TEST(IsFinite, AgreesWithTheStandardLibrary) {
  for (const double x : numbers(3)) EXPECT_TRUE(is_finite(x));
  for (const double x : {HUGE_VAL, -HUGE_VAL, std::nan(""), -std::nan("")}) EXPECT_FALSE(is_finite(x));
}

TEST(ProductError, FactorsNearOne_IsWhatAFusedOperationLeaves) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 100000; ++i) {
    const double a = std::ldexp(static_cast<double>((random() >> 11) | UINT64_C(1) << 52), -53);
    const double b =
        std::ldexp(static_cast<double>((random() >> 11 >> random() % 52 << random() % 2) | UINT64_C(1) << 52), -53);
    if (a >= 1 || b >= 1) continue;
    ASSERT_EQ(product_error(a, b, a * b), std::fma(a, b, -(a * b))) << std::hexfloat << a << ' ' << b;
  }
}

static_assert(within_relative(4.0, 5.0, 0.25) && !within_relative(4.0, 5.0, 0x1.fffffffffffffp-3));
static_assert(within_absolute(1.0, 0x1p-80, 1.0) && !within_absolute(1.0, -0x1p-80, 1.0));

}  // namespace
}  // namespace quern::verifier

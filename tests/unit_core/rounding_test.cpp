// Directed rounding against the mathematical library and 128-bit integers, over random numbers of every size.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>

#include "libcompress/core/rounding.h"

namespace quern {
namespace {

__extension__ using Int128 = __int128;

/// Where a device would run them.
static_assert(0.1 * 3.0 > 0.3 && product_down(0.1, 3.0) == 0.3 && difference_down(1.0, 0x1p-60) < 1.0);
static_assert(integer_down(INT64_MAX) == 0x1.fffffffffffffp62 && integer_up(UINT64_MAX) == 0x1p64);

/// QUERN_RANDOM_CASES asks for more.
std::uint64_t cases() {
  const char* const wanted = std::getenv("QUERN_RANDOM_CASES");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 2000000;
}

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }

/// Numbers >= 0 of every exponent, often with few digits, now and then from the ends.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : random_(seed) {}
  std::uint64_t word() { return random_(); }
  double any() {
    const std::uint64_t r = random_();
    switch (r % 16) {
      case 0: return std::bit_cast<double>(random_() >> (12 + r / 16 % 52));  // subnormal
      case 1: return ends_[r / 16 % std::size(ends_)];
      default: return number(r / 16 % 2047);
    }
  }
  /// A factor whose product with x has the exponent field `exponent`, as nearly as there is one.
  double partner(double x, int exponent) {
    const int own = std::ilogb(x) + 1023;
    return number(static_cast<std::uint64_t>(std::clamp(exponent - own + 1023, 0, 2046)));
  }

 private:
  double number(std::uint64_t exponent) {
    const std::uint64_t keep = random_() % 53;
    const std::uint64_t fraction = random_() >> 12 >> keep << keep;
    return std::bit_cast<double>(exponent << 52 | (fraction & ((UINT64_C(1) << 52) - 1)));
  }
  static constexpr double ends_[] = {0.0,     DBL_TRUE_MIN, DBL_MIN,  DBL_MAX, 1.0, 0x1.fffffffffffffp-1,
                                     0x1p512, 0x1p-450,     0x1p-900, 0x1p-537};
  std::mt19937_64 random_;
};

TEST(Rounding, Neighbours_AreTheLibrarys) {
  for (const double x : {0.0, -0.0, DBL_TRUE_MIN, -DBL_TRUE_MIN, DBL_MIN, DBL_MAX, -DBL_MAX, HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(bits_of(next_down(x)), bits_of(std::nextafter(x, -HUGE_VAL))) << x;
    EXPECT_EQ(bits_of(next_up(x)), bits_of(std::nextafter(x, HUGE_VAL))) << x;
    EXPECT_EQ(is_finite(x), std::isfinite(x)) << x;
  }
  EXPECT_TRUE(std::isnan(next_down(std::nan(""))) && std::isnan(next_up(std::nan(""))));
  EXPECT_FALSE(is_finite(std::nan("")) || is_finite(std::nanf("")) || is_finite(HUGE_VALF));
  Numbers numbers(31);
  for (std::uint64_t i = 0; i < cases(); ++i) {
    const double x = std::bit_cast<double>(numbers.word());
    if (std::isnan(x)) continue;
    ASSERT_EQ(bits_of(next_down(x)), bits_of(std::nextafter(x, -HUGE_VAL))) << "seed 31, round " << i;
    ASSERT_EQ(bits_of(next_up(x)), bits_of(std::nextafter(x, HUGE_VAL))) << "seed 31, round " << i;
    ASSERT_EQ(is_finite(x), std::isfinite(x));
    const float f = std::bit_cast<float>(static_cast<std::uint32_t>(numbers.word() >> 33));
    if (!(f > 0)) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(next_toward_zero(f)), std::bit_cast<std::uint32_t>(std::nextafter(f, 0.0f)));
  }
}

/// As the library has it: a product rounded down, by a fused multiply-add.
double product_by_fma(double a, double b) {
  const double p = a * b;
  if (std::isinf(p)) return DBL_MAX;
  if (p == 0) return 0;
  if (p < 0x1p-900) return std::nextafter(p, 0.0);
  return std::fma(a, b, -p) < 0 ? std::nextafter(p, 0.0) : p;
}

TEST(Rounding, Products_AreThoseOfAFusedMultiplyAdd) {
  Numbers numbers(32);
  std::uint64_t stepped = 0, exact = 0;
  for (std::uint64_t i = 0; i < cases(); ++i) {
    double a = numbers.any(), b = numbers.any();
    // Half of the products near an end: about to overflow, or about to lose their residual.
    if (i % 4 == 1 && a > 0) b = numbers.partner(a, static_cast<int>(2044 + numbers.word() % 4));
    if (i % 4 == 2 && a > 0) b = numbers.partner(a, static_cast<int>(1023 - 903 + numbers.word() % 6));
    const double p = product_down(a, b);
    ASSERT_EQ(bits_of(p), bits_of(product_by_fma(a, b))) << "seed 32, round " << i << ": " << a << " * " << b;
    stepped += p < a * b;
    exact += p == a * b && p > 0;
  }
  EXPECT_GT(stepped, cases() / 8);
  EXPECT_GT(exact, cases() / 8);
}

TEST(Rounding, Differences_AreThoseOfTheLibrary) {
  const auto by_nextafter = [](double max, double min) {
    const double s = max - min;
    if (std::isinf(s)) return DBL_MAX;
    const double b = s - max;
    const double e = (max - (s - b)) + (-min - b);
    return e < 0 ? std::nextafter(s, -HUGE_VAL) : s;
  };
  Numbers numbers(33);
  for (std::uint64_t i = 0; i < cases(); ++i) {
    double a = numbers.any(), b = numbers.any();
    if (i % 2 == 1 && a > 0)
      b = numbers.partner(1.0, std::ilogb(a) + 1023 + static_cast<int>(numbers.word() % 120) - 60);
    if (numbers.word() % 2 == 0) a = -a;
    if (numbers.word() % 2 == 0) b = -b;
    const double max = std::max(a, b), min = std::min(a, b);
    ASSERT_EQ(bits_of(difference_down(max, min)), bits_of(by_nextafter(max, min)))
        << "seed 33, round " << i << ": " << max << " - " << min;
  }
  EXPECT_EQ(difference_down(DBL_MAX, -DBL_MAX), DBL_MAX);
}

template <class Int>
void check_integer(Int v, std::uint64_t round) {
  const double d = static_cast<double>(v);
  const double down = static_cast<Int128>(d) > static_cast<Int128>(v) ? std::nextafter(d, -HUGE_VAL) : d;
  const double up = static_cast<Int128>(d) < static_cast<Int128>(v) ? std::nextafter(d, HUGE_VAL) : d;
  ASSERT_EQ(bits_of(integer_down(v)), bits_of(down)) << v << ", seed 34, round " << round;
  ASSERT_EQ(bits_of(integer_up(v)), bits_of(up)) << v << ", seed 34, round " << round;
}

TEST(Rounding, Integers_LieBetweenTheirNeighbours) {
  std::mt19937_64 random(34);
  for (std::uint64_t i = 0; i < cases(); ++i) {
    // Of every length, and around powers of two.
    const std::uint64_t r = random();
    const std::uint64_t v = i % 2 == 0 ? random() >> r % 64 : (UINT64_C(1) << r % 64) + (random() % 4097) - 2048;
    check_integer(v, i);
    check_integer(static_cast<std::int64_t>(v), i);
    check_integer(static_cast<std::int64_t>(0 - v), i);
    if (HasFatalFailure()) return;
  }
  check_integer(INT64_MIN, 0);
  check_integer(INT64_MAX, 0);
  check_integer(UINT64_MAX, 0);
  check_integer(std::int64_t{0}, 0);
}

}  // namespace
}  // namespace quern

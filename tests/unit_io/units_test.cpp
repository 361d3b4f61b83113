// Bounds in physical units as bounds of stored numbers: never larger, and no smaller than they must be.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include <quern/io.h>

namespace quern::io::test {
namespace {

/// Sign of a * b - c over the real numbers, for positive finite numbers: products of digits as whole numbers.
int compare_product(double a, double b, double c) {
  int ea = 0, eb = 0, ec = 0;
  const auto digits = [](double x, int& e) { return static_cast<std::int64_t>(std::ldexp(std::frexp(x, &e), 53)); };
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(digits(a, ea)) * static_cast<Wide>(digits(b, eb));
  Wide other = static_cast<Wide>(digits(c, ec));
  // product * 2^(ea + eb - 106) against other * 2^(ec - 53)
  int shift = (ec - 53) - (ea + eb - 106);
  while (shift > 0 && (other >> 126) == 0) {
    other <<= 1;
    --shift;
  }
  if (shift > 0) return -1;
  while (shift < 0 && (product >> 126) == 0) {
    product <<= 1;
    ++shift;
  }
  if (shift < 0) return 1;
  return product < other ? -1 : product > other ? 1 : 0;
}

ArrayMeta packed(DType dtype, double scale, double offset) {
  ArrayMeta meta;
  meta.dtype = dtype;
  meta.packed = true;
  meta.scale_factor = scale;
  meta.add_offset = offset;
  return meta;
}

double stored(const ArrayMeta& meta, double bound) {
  std::string detail;
  const auto result = stored_bound({BoundKind::abs, bound}, meta, detail);
  EXPECT_TRUE(result.ok()) << detail;
  return result.ok() ? result->value : -1;
}

TEST(StoredBound, RandomScalesOfAllSizes_IsTheLargestThatKeepsTheBound) {
  std::mt19937_64 random(20261126);
  std::uniform_real_distribution<double> digits(0.5, 1);
  for (int i = 0; i < 20000; ++i) {
    const double scale = std::ldexp(digits(random), static_cast<int>(random() % 600) - 300);
    const double bound = std::ldexp(digits(random), static_cast<int>(random() % 600) - 300);
    const double found = stored(packed(DType::f64, i % 2 == 0 ? scale : -scale, 1e30), bound);
    ASSERT_GT(found, 0);
    EXPECT_LE(compare_product(found, scale, bound), 0) << scale << ' ' << bound;
    const double next = std::nextafter(found, std::numeric_limits<double>::infinity());
    EXPECT_GT(compare_product(next, scale, bound), 0) << scale << ' ' << bound;
  }
}

TEST(StoredBound, ResultsThatAreSubnormal_NeverExceedTheBound) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> digits(0.5, 1);
  for (int i = 0; i < 2000; ++i) {
    const double scale = std::ldexp(digits(random), 500 + static_cast<int>(random() % 20));
    const double bound = std::ldexp(digits(random), -540 - static_cast<int>(random() % 60));
    const double found = stored(packed(DType::f64, scale, 0), bound);
    if (found != 0) EXPECT_LE(compare_product(found, scale, bound), 0) << scale << ' ' << bound;
  }
  EXPECT_EQ(stored(packed(DType::f64, 1e300, 0), 1e-300), 0);
  EXPECT_EQ(stored(packed(DType::f64, 1e-300, 0), 1e300), std::numeric_limits<double>::max());
}

TEST(StoredBound, Integers_AreCutToWholeUnits) {
  EXPECT_EQ(stored(packed(DType::i16, 365.5, -1.2e7), 1000), 2);
  EXPECT_EQ(stored(packed(DType::i16, -365.5, -1.2e7), 731), 2);
  EXPECT_EQ(stored(packed(DType::i16, 365.5, -1.2e7), 730.9999), 1);
  EXPECT_EQ(stored(packed(DType::i16, 0.01, 273.15), 0.004), 0);  // below half a unit: exact
  EXPECT_EQ(stored(packed(DType::i16, 0.01, 273.15), 0.009), 0);
  // 0.03 / 0.01 rounds to 3, but 3 * 0.01 as real numbers is more than 0.03 or not: the digits decide.
  EXPECT_EQ(stored(packed(DType::i32, 0.01, 0), 0.03), compare_product(3, 0.01, 0.03) <= 0 ? 3 : 2);
  EXPECT_EQ(stored(packed(DType::i32, 0.1, 0), 0.3), compare_product(3, 0.1, 0.3) <= 0 ? 3 : 2);
  EXPECT_EQ(stored(packed(DType::u8, 0.5, 0), 0), 0);
}

TEST(StoredBound, AddOffsetAlone_ChangesNothing) { EXPECT_EQ(stored(packed(DType::f32, 1.0, 1e9), 0.125), 0.125); }

TEST(StoredBound, KindsWithoutUnits_StayAsTheyAre) {
  std::string detail;
  const ArrayMeta meta = packed(DType::f32, 365.5, 4);
  for (const BoundKind kind : {BoundKind::rel, BoundKind::psnr, BoundKind::ratio, BoundKind::lossless}) {
    const auto result = stored_bound({kind, 12}, meta, detail);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->kind, kind);
    EXPECT_EQ(result->value, 12);
  }
  EXPECT_FALSE(stored_bound({BoundKind::pwrel, 0.1}, meta, detail).ok());
  EXPECT_NE(detail.find("--abs"), std::string::npos) << detail;
  const auto scaled = stored_bound({BoundKind::pwrel, 0.1}, packed(DType::f32, 365.5, 0), detail);
  ASSERT_TRUE(scaled.ok());
  EXPECT_EQ(scaled->value, 0.1);
}

TEST(StoredBound, ScaleThatIsNoNumber_IsRefused) {
  std::string detail;
  EXPECT_FALSE(stored_bound({BoundKind::abs, 1}, packed(DType::f32, 0, 0), detail).ok());
  EXPECT_FALSE(
      stored_bound({BoundKind::abs, 1}, packed(DType::f32, std::numeric_limits<double>::infinity(), 0), detail).ok());
}

TEST(StoredRange, PhysicalRange_BecomesNoWider) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> number(-1e4, 1e4);
  for (int i = 0; i < 2000; ++i) {
    double min = number(random), max = min + std::fabs(number(random));
    const double width = max - min, scale = number(random);
    if (scale == 0 || width == 0) continue;
    const ArrayMeta meta = packed(DType::i16, scale, number(random));
    const double low = min, high = max;
    stored_range(meta, min, max);
    ASSERT_LE(min, max);
    EXPECT_LE((max - min) * std::fabs(scale), width * (1 + 1e-15));
    EXPECT_NEAR((max - min) * std::fabs(scale), width, 1e-9 * width);
    EXPECT_NEAR((scale > 0 ? min : max) * scale + meta.add_offset, low, 1e-6 * (std::fabs(low) + 1e4));
    EXPECT_NEAR((scale > 0 ? max : min) * scale + meta.add_offset, high, 1e-6 * (std::fabs(high) + 1e4));
  }
}

}  // namespace
}  // namespace quern::io::test

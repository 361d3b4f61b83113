// Points at the origin are left out with their attributes; nothing else is.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "lidar/cloud/little_endian.h"
#include "lidar/cloud/zero_points.h"

namespace quern::lidar {
namespace {

/// Columns of 1, 2 and 8 bytes, whose elements are the points' numbers.
void number_points(PointCloud& cloud) {
  cloud.columns = {{"a", DType::u8, {}}, {"b", DType::u16, {}}, {"c", DType::u64, {}}};
  for (std::uint64_t i = 0; i < cloud.points(); ++i) {
    append_le(static_cast<std::uint8_t>(i), cloud.columns[0].values);
    append_le(static_cast<std::uint16_t>(i), cloud.columns[1].values);
    append_le(i, cloud.columns[2].values);
  }
}

void expect_numbers(const PointCloud& cloud, const Vector<double>& numbers) {
  ASSERT_EQ(cloud.points(), numbers.size());
  for (const CloudColumn& column : cloud.columns) {
    ASSERT_EQ(column.values.size(), numbers.size() * dtype_bytes(column.type));
    for (std::uint64_t i = 0; i < cloud.points(); ++i)
      EXPECT_EQ(element_as_double(column, i), numbers[static_cast<std::size_t>(i)]);
  }
}

PointCloud of_doubles(Vector<double> coordinates) {
  PointCloud out;
  out.kind = CoordinateKind::f64;
  out.doubles = std::move(coordinates);
  number_points(out);
  return out;
}

TEST(ZeroPoints_OfBinary64_AreDropped, BothZerosAndNothingElse) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double tiny = std::numeric_limits<double>::denorm_min();
  PointCloud cloud = of_doubles({0, 0, 0, 1, 0, 0, -0.0, 0, -0.0, nan, 0, 0, 0, 0, tiny, 0, 0, 0});
  cloud.rows = 2;
  EXPECT_EQ(drop_zero_points(cloud), 3U);
  expect_numbers(cloud, {1, 3, 4});
  EXPECT_EQ(cloud.rows, 0U);
  EXPECT_EQ(cloud.position(0), (std::array<double, 3>{1, 0, 0}));
  EXPECT_TRUE(std::isnan(cloud.position(1)[0]));
  EXPECT_EQ(cloud.position(2), (std::array<double, 3>{0, 0, tiny}));
}

TEST(ZeroPoints_OfScaledNumbers_AreThoseAtTheOrigin, NotThoseAtTheOffset) {
  PointCloud cloud;
  cloud.kind = CoordinateKind::scaled;
  cloud.grid.scale = {0.5, 0.5, 0.5};
  cloud.grid.offset = {10, -20, 30};
  const auto minus = [](std::int32_t number) { return static_cast<std::uint32_t>(-number); };
  cloud.words = {0, 0, 0, minus(20), 40, minus(60), 1, 2, 3};
  number_points(cloud);
  EXPECT_EQ(drop_zero_points(cloud), 1U);
  expect_numbers(cloud, {0, 2});
  EXPECT_EQ(cloud.words, (Vector<std::uint32_t>{0, 0, 0, 1, 2, 3}));
}

TEST(ZeroPoints_OfBinary32_AllOrNone, EmptyOrAsItWas) {
  PointCloud zeros;
  zeros.words.assign(12, 0);
  zeros.words[4] = 0x80000000;
  number_points(zeros);
  EXPECT_EQ(drop_zero_points(zeros), 4U);
  expect_numbers(zeros, {});
  PointCloud none;
  none.words.assign(12, 1);
  none.rows = 2;
  number_points(none);
  EXPECT_EQ(drop_zero_points(none), 0U);
  expect_numbers(none, {0, 1, 2, 3});
  EXPECT_EQ(none.rows, 2U);
}

}  // namespace
}  // namespace quern::lidar

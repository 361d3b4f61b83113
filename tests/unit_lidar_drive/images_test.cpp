// Range images: angles and points against binary64, frames of images, sensors that are damaged.
#include <gtest/gtest.h>

#include <cmath>

#include "libcompress/core/task_runner.h"
#include "lidar/cloud/little_endian.h"
#include "lidar/drive/frame_coding.h"
#include "lidar/images/range_cloud.h"
#include "tests/unit_lidar/clouds.h"
#include "tests/unit_lidar_drive/made_clouds.h"

namespace quern::lidar {
namespace {

using namespace quern::lidar_test;

RangeSensor sensor_of(std::uint64_t rows, std::uint64_t columns) {
  RangeSensor out;
  out.columns = columns;
  out.origin = 17'000;
  out.origin_x = 15'806;
  out.origin_z = 6'000;
  for (std::uint64_t i = 0; i < rows; ++i) {
    const auto row = static_cast<std::int64_t>(i);
    out.beams.push_back({22'500'000 - row * 1'234'567, 4'210'000 - row % 4 * 2'800'000, row % 4});
  }
  out.transform = {-RangeSensor::kOne, 0, 0, 0, 0, -RangeSensor::kOne, 0, 0, 0, 0, RangeSensor::kOne, 36'180};
  return out;
}

Vector<std::uint8_t> ranges_of(const RangeSensor& sensor, std::uint64_t seed) {
  Random random(seed);
  Vector<std::uint8_t> out;
  for (std::uint64_t i = 0; i < sensor.pixels(); ++i)
    append_le(random.below(5) == 0 ? std::uint32_t{0} : static_cast<std::uint32_t>(random.below(1U << 18)), out);
  return out;
}

TEST(SineCosine_OfEveryAngle_IsThatOfBinary64, StepsAndCorners) {
  for (std::int64_t angle = -800'000'000; angle <= 800'000'000; angle += 77'777) {
    const SineCosine at = sine_cosine(angle);
    const double radians = static_cast<double>(angle) * 1e-6 * M_PI / 180;
    ASSERT_NEAR(static_cast<double>(at.sine), std::sin(radians) * 0x1p30, 8) << angle;
    ASSERT_NEAR(static_cast<double>(at.cosine), std::cos(radians) * 0x1p30, 8) << angle;
  }
  for (const std::int64_t quarter : {-360, -270, -180, -90, 0, 90, 180, 270, 360}) {
    const SineCosine at = sine_cosine(quarter * 1'000'000);
    EXPECT_EQ(std::abs(at.sine) + std::abs(at.cosine), RangeSensor::kOne) << quarter;
  }
}

TEST(Project_EveryPixel_IsNearTheFormulasInBinary64, StaggeredAndNot) {
  for (const bool is_destaggered : {false, true}) {
    RangeSensor sensor = sensor_of(16, 100);
    sensor.is_destaggered = is_destaggered;
    const auto ranges = ranges_of(sensor, 1);
    const auto words = project(sensor, ranges);
    ASSERT_TRUE(words.ok());
    for (std::size_t i = 0; i < 1600; ++i) {
      const auto reach = load_le<std::uint32_t>(ranges.data() + 4 * i);
      const auto& beam = sensor.beams[i / 100];
      const std::int64_t column = static_cast<std::int64_t>(i % 100) - (is_destaggered ? beam.pixel_shift : 0);
      const double turn = M_PI / 180e6;
      const double e = 2 * M_PI * (1 - static_cast<double>(column) / 100);
      const double h = -static_cast<double>(beam.azimuth) * turn;
      const double p = static_cast<double>(beam.altitude) * turn;
      const double k = reach - 17.0;
      const double expected[3] = {-(k * std::cos(e + h) * std::cos(p) + 15.806 * std::cos(e)),
                                  -(k * std::sin(e + h) * std::cos(p) + 15.806 * std::sin(e)),
                                  k * std::sin(p) + 6 + 36.18};
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const float found = std::bit_cast<float>((*words)[3 * i + axis]);
        if (reach == 0) {
          EXPECT_TRUE(std::isnan(found));
        } else {
          EXPECT_NEAR(static_cast<double>(found), expected[axis] / 1000, 4e-5) << i;
        }
      }
    }
  }
}

/// FNV-1a of all words: the same on every machine.
TEST(Project_BitsOfAllPoints_AreThoseOfEveryMachine, GoldenNumber) {
  const RangeSensor sensor = sensor_of(64, 512);
  const auto words = project(sensor, ranges_of(sensor, 7));
  ASSERT_TRUE(words.ok());
  std::uint64_t hash = UINT64_C(14695981039346656037);
  for (const std::uint32_t word : *words) hash = (hash ^ word) * UINT64_C(1099511628211);
  EXPECT_EQ(hash, UINT64_C(12865459288729555936));
}

TEST(FrameOfAnImage_ModeExact_KeepsBitsAndPoints, AndRefusesOtherPixels) {
  const RangeSensor sensor = sensor_of(16, 64);
  Vector<CloudColumn> others;
  others.push_back({"signal", DType::u16, Vector<std::uint8_t>(2 * 16 * 64, 7)});
  const auto cloud = cloud_of_image(sensor, ranges_of(sensor, 2), others);
  ASSERT_TRUE(cloud.ok());
  ASSERT_TRUE(is_image(*cloud));
  SerialRunner runner;
  FrameOptions options;
  options.mode = Mode::exact;
  auto frame = encode_frame(*cloud, options, runner);
  ASSERT_TRUE(frame.ok()) << frame.status().text();
  EXPECT_EQ(frame->description.kind, CodedKind::projected);
  frame->description.name = "image";
  const auto description = read_description(write_description(frame->description));
  ASSERT_TRUE(description.ok());
  const auto back = decode_frame(*description, frame->scan, 1 << 20, runner);
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_TRUE(same_cloud(*cloud, *back));
  EXPECT_EQ(back->rows, 16U);

  FrameDescription other = *description;
  other.file_header = write_range_sensor(sensor_of(16, 63));
  EXPECT_EQ(decode_frame(other, frame->scan, 1 << 20, runner).status().code(), StatusCode::corrupt);
  other.file_header.clear();
  EXPECT_FALSE(decode_frame(other, frame->scan, 1 << 20, runner).ok());
  other = *description;
  other.rows = 8;
  EXPECT_EQ(decode_frame(other, frame->scan, 1 << 20, runner).status().code(), StatusCode::corrupt);

  // Points that the ranges do not give are coded as they are.
  PointCloud moved = *cloud;
  moved.words[0] ^= 1;
  frame = encode_frame(moved, options, runner);
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->description.kind, CodedKind::f32);
}

TEST(PointsOfAnImage_LeaveOutWhatDidNotComeBack, AndKeepColumns) {
  const RangeSensor sensor = sensor_of(4, 8);
  Vector<std::uint8_t> numbers;
  for (std::uint8_t i = 0; i < 32; ++i) numbers.push_back(i);
  Vector<CloudColumn> others;
  others.push_back({"number", DType::u8, numbers});
  const auto cloud = cloud_of_image(sensor, ranges_of(sensor, 3), others);
  const PointCloud points = points_of_image(*cloud);
  ASSERT_EQ(points.columns.size(), 1U);
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < 32; ++i) {
    if (!cloud->is_finite(i)) continue;
    ASSERT_EQ(points.columns[0].values[static_cast<std::size_t>(at)], i);
    EXPECT_EQ(points.position(at++), cloud->position(i));
  }
  EXPECT_EQ(points.points(), at);
}

TEST(RangeSensor_CutAndChanged_IsSensorOrStatus, EveryLength) {
  const auto whole = write_range_sensor(sensor_of(16, 64));
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(read_range_sensor(std::span(whole).first(n)).ok()) << n;
  Random random(4);
  for (int i = 0; i < 5000; ++i) {
    auto changed = whole;
    for (int k = 0; k <= i % 3; ++k)
      changed[static_cast<std::size_t>(random.below(changed.size()))] = static_cast<std::uint8_t>(random.next());
    const auto sensor = read_range_sensor(changed);
    if (!sensor.ok() || sensor->pixels() > 100'000) continue;
    const auto ranges = Vector<std::uint8_t>(static_cast<std::size_t>(4 * sensor->pixels()), std::uint8_t{1});
    EXPECT_FALSE(project(*sensor, ranges).ok());  // 16,843,009 mm
    EXPECT_EQ(write_range_sensor(*sensor).empty(), false);
  }
  // What is as large as it may be does not run over.
  RangeSensor most = sensor_of(2, 4);
  most.origin = -RangeSensor::kMostOffset;
  for (std::size_t i = 0; i < 12; ++i) most.transform[i] = i % 4 == 3 ? RangeSensor::kMostShift : RangeSensor::kOne;
  Vector<std::uint8_t> ranges;
  for (int i = 0; i < 8; ++i) append_le(RangeSensor::kMostRange, ranges);
  ASSERT_TRUE(is_range_sensor(most));
  const auto words = project(most, ranges);
  ASSERT_TRUE(words.ok());
  for (const std::uint32_t word : *words) EXPECT_LT(std::fabs(std::bit_cast<float>(word)), 4000);
}

}  // namespace
}  // namespace quern::lidar

// Frames: every kind of coordinates in every mode, by the check that shares nothing with the codec.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "lidar/cloud/length.h"
#include "lidar/drive/frame_coding.h"
#include "lidar/verify/promise.h"
#include "tests/unit_lidar_drive/made_clouds.h"

namespace quern::lidar {
namespace {

using namespace quern::lidar_test;

constexpr std::uint64_t kNoLimit = UINT64_C(1) << 28;

Promise promise_of(const CodedFrame& frame) {
  const auto info = codec::lidar::scan_info(frame.scan);
  EXPECT_TRUE(info.ok());
  const auto kind = static_cast<PromiseKind>(info->mode);
  return {kind, frame_errors(frame.description, *info).bound, info->max_error};
}

/// Encodes, decodes and checks.
void expect_kept(const PointCloud& cloud, Mode mode, std::uint64_t bound_nm) {
  SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(cloud.kind) << " mode " << static_cast<int>(mode)
                                  << " bound " << bound_nm);
  SerialRunner runner;
  const auto frame = encode_frame(cloud, {mode, bound_nm}, runner);
  ASSERT_TRUE(frame.ok()) << frame.status().text();
  const auto back = decode_frame(frame->description, frame->scan, kNoLimit, runner);
  ASSERT_TRUE(back.ok()) << back.status().text();
  const Promise promise = promise_of(*frame);
  if (mode != Mode::exact) {
    EXPECT_LE(promise.bound, static_cast<double>(bound_nm) / 1e9 * (1 + 1e-12));
  }
  const auto check = check_promise(cloud, *back, promise, runner);
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(check->passed()) << check->violations << " " << check->attribute_changes << " " << check->same_points;
  if (mode == Mode::exact) {
    EXPECT_TRUE(same_cloud(cloud, *back));
  }
  EXPECT_LE(check->distances.forward.max, frame->achieved_error * (1 + 1e-9) + 1e-9);
  EXPECT_LE(check->distances.backward.max, frame->achieved_error * (1 + 1e-9) + 1e-9);
}

TEST(Frames_AllKindsAndModes_KeepTheirPromise, SmallScans) {
  const PointCloud scan = with_columns(small_scan(600, 1));
  for (const PointCloud& cloud : {scan, as_f64(scan), as_scaled(scan, 0.001), as_scaled(scan, 0.01)}) {
    expect_kept(cloud, Mode::exact, 0);
    for (const Mode mode : {Mode::set, Mode::points})
      for (const std::uint64_t cm : {1U, 2U, 5U, 10U, 15U, 26U}) expect_kept(cloud, mode, cm * UINT64_C(10'000'000));
  }
}

TEST(Frames_FewPoints_KeepTheirPromise, NoneOneMany) {
  for (const std::uint64_t points : {0U, 1U, 2U}) {
    PointCloud cloud;
    cloud.columns.push_back({"intensity", DType::u8, Vector<std::uint8_t>(points, 9)});
    for (std::uint64_t i = 0; i < 3 * points; ++i)
      cloud.words.push_back(std::bit_cast<std::uint32_t>(1.5F + static_cast<float>(i)));
    for (const PointCloud& one : {cloud, as_f64(cloud), as_scaled(cloud, 0.01)}) {
      expect_kept(one, Mode::exact, 0);
      expect_kept(one, Mode::set, 150'000'000);
      expect_kept(one, Mode::points, 150'000'000);
    }
  }
}

TEST(Frames_AllPointsEqual_KeepTheirPromise, ThousandsAtOnePlace) {
  PointCloud cloud;
  for (int i = 0; i < 20000; ++i)
    for (const float x : {3.25F, -1.5F, 0.125F}) cloud.words.push_back(std::bit_cast<std::uint32_t>(x));
  for (const Mode mode : {Mode::set, Mode::points, Mode::exact}) expect_kept(cloud, mode, 50'000'000);
}

TEST(Frames_FarPoints_KeepTheirPromise, TenKilometres) {
  PointCloud cloud;
  for (int i = 0; i < 500; ++i)
    for (const float x : {10000.0F + static_cast<float>(i) * 0.37F, -9000.0F, static_cast<float>(i % 7)})
      cloud.words.push_back(std::bit_cast<std::uint32_t>(x));
  for (const Mode mode : {Mode::set, Mode::points, Mode::exact}) expect_kept(cloud, mode, 20'000'000);
}

TEST(Frames_NonFiniteF64_AreDroppedOrKept, ByMode) {
  PointCloud cloud = as_f64(small_scan(64, 3));
  const auto nan = std::bit_cast<double>(UINT64_C(0x7FF8000012345678));
  cloud.doubles[3] = nan;
  cloud.doubles[7] = -std::numeric_limits<double>::infinity();
  cloud.doubles[9] = std::bit_cast<double>(UINT64_C(0xFFF0000000000001));
  expect_kept(cloud, Mode::exact, 0);
  expect_kept(cloud, Mode::set, 100'000'000);
  SerialRunner runner;
  const auto set = encode_frame(cloud, {Mode::set, 100'000'000}, runner);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->dropped_points, 3U);
  EXPECT_EQ(encode_frame(cloud, {Mode::points, 100'000'000}, runner).status().code(), StatusCode::invalid_argument);
}

TEST(Frames_BoundsBelowTheResolution_AreRefused, ByKind) {
  SerialRunner runner;
  const PointCloud scan = small_scan(64, 4);
  EXPECT_TRUE(encode_frame(scan, {Mode::set, 100'000}, runner).ok());
  EXPECT_EQ(encode_frame(scan, {Mode::set, 99'999}, runner).status().code(), StatusCode::invalid_argument);
  EXPECT_TRUE(encode_frame(as_f64(scan), {Mode::set, 200'000}, runner).ok());
  EXPECT_EQ(encode_frame(as_f64(scan), {Mode::set, 199'999}, runner).status().code(), StatusCode::invalid_argument);
  EXPECT_TRUE(encode_frame(as_scaled(scan, 0.01), {Mode::set, 10'000'000}, runner).ok());
  EXPECT_EQ(encode_frame(as_scaled(scan, 0.01), {Mode::set, 9'999'999}, runner).status().code(),
            StatusCode::invalid_argument);
  EXPECT_EQ(encode_frame(scan, {Mode::set, kMostMaxErrorNm + 1}, runner).status().code(), StatusCode::invalid_argument);
  PointCloud uneven = as_scaled(scan, 0.01);
  uneven.grid.scale[2] = 0.02;
  EXPECT_EQ(encode_frame(uneven, {Mode::points, 50'000'000}, runner).status().code(), StatusCode::invalid_argument);
  EXPECT_TRUE(encode_frame(uneven, {Mode::exact, 0}, runner).ok());
}

TEST(Frames_ColumnsOfWrongLength_AreRefused, OneShort) {
  SerialRunner runner;
  PointCloud scan = small_scan(64, 5);
  scan.columns[0].values.pop_back();
  EXPECT_EQ(encode_frame(scan, {}, runner).status().code(), StatusCode::invalid_argument);
}

TEST(Frames_DescriptionOfAnotherScan_IsCorrupt, KindsAndColumns) {
  SerialRunner runner;
  const auto frame = encode_frame(small_scan(64, 6), {Mode::exact, 0}, runner);
  ASSERT_TRUE(frame.ok());
  const auto code = [&](const FrameDescription& description) {
    return decode_frame(description, frame->scan, kNoLimit, runner).status().code();
  };
  FrameDescription other = frame->description;
  other.kind = CodedKind::scaled;
  EXPECT_EQ(code(other), StatusCode::corrupt);
  other.kind = CodedKind::f64_remainders;
  EXPECT_EQ(code(other), StatusCode::corrupt);
  other = frame->description;
  other.columns.pop_back();
  EXPECT_EQ(code(other), StatusCode::corrupt);
  other = frame->description;
  other.columns[1].type = DType::u8;
  EXPECT_EQ(code(other), StatusCode::corrupt);
  other = frame->description;
  other.rows = 7;
  EXPECT_EQ(code(other), StatusCode::corrupt);
  EXPECT_EQ(decode_frame(frame->description, frame->scan, 3, runner).status().code(), StatusCode::memory_limit);
}

TEST(Lengths_InDecimal_MeanThemselves, NanometresOfMetres) {
  EXPECT_EQ(nanometres_of(0.15), 150'000'000U);
  EXPECT_EQ(nanometres_of(0.29), 290'000'000U);
  EXPECT_EQ(nanometres_of(0.0001), 100'000U);
  EXPECT_EQ(nanometres_of(1.1), 1'100'000'000U);
  EXPECT_EQ(nanometres_of(std::nextafter(0.15, 0)), 149'999'999U);
  EXPECT_EQ(nanometres_of(std::nextafter(0.15, 1)), 150'000'000U);
  EXPECT_EQ(nanometres_of(0), 0U);
  EXPECT_EQ(nanometres_of(-1), 0U);
  EXPECT_EQ(nanometres_of(std::numeric_limits<double>::quiet_NaN()), 0U);
  EXPECT_GT(nanometres_of(1e300), kMostMaxErrorNm);
}

}  // namespace
}  // namespace quern::lidar

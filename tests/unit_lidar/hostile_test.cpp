// Damaged bytes: every flip and every truncation of a stream ends in a status; parts without their checksums decode to
// something or fail, and nothing more.
#include <gtest/gtest.h>

#include "codecs/lidar/columns/column_coder.h"
#include "codecs/lidar/exact/residuals.h"
#include "codecs/lidar/octree/tree.h"
#include "codecs/lidar/order/order_coder.h"
#include "codecs/lidar/point_codec.h"
#include "codecs/lidar/rays/rays.h"
#include "tests/unit_lidar/clouds.h"

namespace quern::codec::lidar {
namespace {

using namespace quern::lidar_test;

constexpr std::uint64_t kLimit = 100000;

Vector<std::uint8_t> stream_of(Mode mode) {
  const TestCloud cloud = spinning_scan(4, 30, 5, false);
  const ColumnView column{1, cloud.intensity};
  SerialRunner runner;
  ScanOptions options;
  options.mode = mode;
  options.slices = mode == Mode::exact ? 2 : 1;
  auto bytes = encode_scan({cloud.type, cloud.words, {&column, 1}}, options, runner);
  EXPECT_TRUE(bytes.ok());
  return std::move(*bytes);
}

TEST(HostileScan_AnyFlippedBit, IsAnError) {
  SerialRunner runner;
  for (const Mode mode : {Mode::set, Mode::points, Mode::exact}) {
    Vector<std::uint8_t> bytes = stream_of(mode);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto bit = static_cast<std::uint8_t>(1U << (i * 5 % 8));
      bytes[i] ^= bit;
      EXPECT_FALSE(decode_scan(bytes, kLimit, runner).ok()) << "byte " << i;
      bytes[i] ^= bit;
    }
    EXPECT_TRUE(decode_scan(bytes, kLimit, runner).ok());
  }
}

TEST(HostileScan_AnyTruncationOrTail, IsAnError) {
  SerialRunner runner;
  Vector<std::uint8_t> bytes = stream_of(Mode::points);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_scan(std::span(bytes).first(size), kLimit, runner).ok()) << size;
  bytes.push_back(0);
  EXPECT_EQ(decode_scan(bytes, kLimit, runner).status().code(), StatusCode::trailing_data);
}

TEST(HostileScan_MorePointsThanTheLimit, IsRefusedBeforeDecoding) {
  SerialRunner runner;
  const auto bytes = stream_of(Mode::set);
  EXPECT_EQ(decode_scan(bytes, 3, runner).status().code(), StatusCode::memory_limit);
}

TEST(HostileParts_RandomBytes, DecodeOrFail) {
  Random random(77);
  unsigned failed = 0;
  for (int round = 0; round < 400; ++round) {
    Vector<std::uint8_t> bytes(random.below(80));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.below(4) == 0 ? 0 : random.next());
    Block block;
    block.depth = static_cast<unsigned>(random.below(22));
    const Surroundings surroundings{{static_cast<std::int64_t>(1 + random.below(1 << 20)), random.below(2) == 0},
                                    10000};
    const Status status =
        decode_block(bytes, surroundings, 1 + random.below(300), random.below(2) == 0, 1 + random.below(500), block);
    failed += status.ok() ? 0 : 1;
    EXPECT_LE(block.cubes.size(), 300U);
    Vector<std::uint8_t> values(random.below(300) * 4);
    (void)decode_column(bytes, 4, values);
    Vector<std::int64_t> numbers(3 * random.below(100));
    (void)apply_residuals(bytes, numbers);
    Vector<Site> points(random.below(200));
    (void)decode_rays(bytes, 1 + static_cast<std::int64_t>(random.below(1 << 20)), points);
    const Vector<Site> sites = {{0, 0, 0}, {1, 1, 1}, {2, 0, 2}};
    const Vector<std::uint32_t> counts = {3, 1, 2};
    Vector<std::uint32_t> order(6);
    if (decode_order(bytes, sites, counts, order).ok()) {
      for (const std::uint32_t site : order) EXPECT_LT(site, 3U);
    }
  }
  EXPECT_GT(failed, 300U);
}

TEST(HostileBlock_MutatedBytes, StayWithinTheirLimits) {
  Block block;
  block.depth = 5;
  Random random(5);
  for (std::uint64_t cube = 0; cube < (1U << 15); cube += 1 + random.below(200)) {
    block.cubes.push_back(cube);
    block.halves.push_back(static_cast<std::uint8_t>(1 + random.below(3)));
  }
  const Surroundings surroundings{{100, true}, 10000};
  const ExpectedCubes marked{block.cubes, block.halves};
  ExpectedCubes weighed = marked;
  for (const std::uint8_t half : block.halves)
    weighed.weights.push_back({static_cast<std::uint8_t>(half & 1), static_cast<std::uint8_t>(half >> 1)});
  for (const BlockPrediction& expected : {BlockPrediction{}, BlockPrediction{marked, {}}, BlockPrediction{weighed, {}},
                                          BlockPrediction{weighed, weighed}}) {
    const Vector<std::uint8_t> good = encode_block(block, surroundings, expected);
    Block back;
    back.depth = 5;
    ASSERT_TRUE(decode_block(good, surroundings, block.cubes.size(), false, 0, back, expected).ok());
    EXPECT_TRUE(back.cubes == block.cubes && back.halves == block.halves);
    for (int round = 0; round < 150; ++round) {
      Vector<std::uint8_t> bad = good;
      bad[random.below(bad.size())] ^= static_cast<std::uint8_t>(1 + random.below(255));
      Block other;
      other.depth = 5;
      (void)decode_block(bad, surroundings, block.cubes.size(), false, 0, other, expected);
      EXPECT_LE(other.cubes.size(), block.cubes.size());
    }
  }
}

TEST(ScanRequest_OutOfRange, IsRefused) {
  SerialRunner runner;
  TestCloud cloud;
  cloud.add(1, 2, 3);
  ScanOptions options;
  options.max_error = 0;
  EXPECT_EQ(encode_scan({cloud.type, cloud.words, {}}, options, runner).status().code(), StatusCode::invalid_bound);
  options.max_error = kMostMaxError + 1;
  EXPECT_EQ(encode_scan({cloud.type, cloud.words, {}}, options, runner).status().code(), StatusCode::invalid_bound);
  options.max_error = 5;
  const ColumnView wrong{4, cloud.intensity};
  EXPECT_EQ(encode_scan({cloud.type, cloud.words, {&wrong, 1}}, options, runner).status().code(),
            StatusCode::invalid_argument);
  EXPECT_EQ(encode_scan({cloud.type, std::span(cloud.words).first(2), {}}, options, runner).status().code(),
            StatusCode::invalid_argument);
}

}  // namespace
}  // namespace quern::codec::lidar

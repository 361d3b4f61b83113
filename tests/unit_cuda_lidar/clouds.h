// Pairs of clouds in fine units, and the check of both directions on a device.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "codecs/lidar/geometry/both_ways.h"
#include "kernels/lidar/cuda/both_ways_cuda.h"
#include "libcompress/core/task_runner.h"
#include "tests/support/device_buffer.h"

namespace quern::testing {

using kernels::GridPoint;

struct CloudPair {
  std::vector<GridPoint> points;
  std::vector<GridPoint> decoded;
};

/// Points at a few places, around each as far as three times the reach; decoded ones are points that were moved by up to
/// about the reach. Some are doubled, some lie as far away as coordinates may.
inline CloudPair random_pair(std::size_t points, std::size_t decoded, std::int64_t reach, std::mt19937_64& random) {
  const auto around = [&](std::int64_t middle, std::int64_t spread) {
    return middle - spread + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * spread + 1));
  };
  CloudPair pair;
  for (std::size_t i = 0; i < points; ++i) {
    const auto place = static_cast<std::int64_t>(random() % 8);
    GridPoint point;
    for (std::int64_t& at : point) at = around((place - 4) * 40 * reach, 3 * reach);
    if (i > 0 && random() % 16 == 0) point = pair.points[random() % i];
    pair.points.push_back(point);
  }
  for (std::size_t i = 0; i < decoded; ++i) {
    GridPoint point{};
    if (points > 0) point = pair.points[random() % points];
    for (std::int64_t& at : point) at = around(at, reach * 5 / 8 + 1);
    if (random() % 32 == 0) point = {INT64_C(1) << 60, 7, -(INT64_C(1) << 49)};
    pair.decoded.push_back(point);
  }
  return pair;
}

struct DeviceCheck {
  std::vector<std::uint32_t> nearest_decoded;
  std::vector<std::uint32_t> nearest_point;
  kernels::CudaBothWays counts;
};

inline DeviceCheck check_on_device(const CloudPair& pair, std::int64_t reach, unsigned max_blocks) {
  const auto points = static_cast<std::uint32_t>(pair.points.size());
  const auto decoded = static_cast<std::uint32_t>(pair.decoded.size());
  DeviceBuffer<GridPoint> device_points(pair.points), device_decoded(pair.decoded);
  DeviceBuffer<std::uint32_t> nearest_decoded(points), nearest_point(decoded);
  DeviceBuffer<kernels::CudaBothWays> counts(1);
  DeviceBuffer<std::uint8_t> room(kernels::both_ways_bytes(points, decoded, reach));
  EXPECT_EQ(kernels::check_both_ways_async({device_points.data(), points}, {device_decoded.data(), decoded}, reach,
                                           nearest_decoded.data(), nearest_point.data(), counts.data(), room.data(),
                                           room.count(), nullptr, max_blocks),
            cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {nearest_decoded.get(), nearest_point.get(), counts.get().front()};
}

inline void expect_as_on_the_host(const CloudPair& pair, std::int64_t reach, const DeviceCheck& got) {
  quern::Execution execution;
  quern::RunnerHandle runner(execution);
  const auto host = codec::lidar::check_both_ways(pair.points, pair.decoded, reach, runner.get());
  ASSERT_TRUE(host.ok()) << host.status().text();
  std::vector<std::uint32_t> uncovered;
  for (std::uint32_t i = 0; i < got.nearest_decoded.size(); ++i)
    if (got.nearest_decoded[i] == kernels::NearestPoint::kNone) uncovered.push_back(i);
  EXPECT_EQ(uncovered, std::vector<std::uint32_t>(host->uncovered.begin(), host->uncovered.end()));
  EXPECT_EQ(got.nearest_point, std::vector<std::uint32_t>(host->nearest_source.begin(), host->nearest_source.end()));
  EXPECT_EQ(got.counts.of_points.missing, host->uncovered.size());
  EXPECT_EQ(got.counts.of_decoded.missing, host->strays);
  EXPECT_EQ(std::max(got.counts.of_points.largest_square, got.counts.of_decoded.largest_square),
            static_cast<std::uint64_t>(host->largest_square));
}

}  // namespace quern::testing

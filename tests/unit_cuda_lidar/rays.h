// A sensor's rays and clouds around it, and their projection on a device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "codecs/lidar/rays/direction.h"
#include "kernels/lidar/cuda/project_cuda.h"
#include "tests/support/device_buffer.h"

namespace quern::testing {

using kernels::GridPoint;
using kernels::RayHit;

/// Rings of a spinning sensor whose slopes rise, and steps of the azimuth.
struct MadeRays {
  std::vector<kernels::RayRing> rings;
  codec::lidar::StepTable table;

  MadeRays(int count, std::int64_t step) : table(codec::lidar::direction_of(1'000'000, step)) {
    for (int i = 0; i < count; ++i) rings.push_back({-20000 + 900 * i + i * i % 7, 100 * (i % 5)});
  }
  kernels::RayView view() const { return {rings.data(), rings.size(), table.search()}; }
};

/// Points around the sensor, in its plane mostly; many at the same few ranges and many twice, so that keys tie.
inline std::vector<GridPoint> made_points(std::size_t count, std::mt19937_64& random) {
  std::vector<GridPoint> points;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t reach = random() % 3 == 0 ? kernels::RigidMove::kMostUnits : 300'000;
    const auto any = [&](std::int64_t most) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * most + 1)) - most;
    };
    GridPoint point = {any(reach), any(reach), any(reach / 4)};
    if (i > 2 && random() % 4 == 0) point = points[random() % i];
    // Of one range, score and height but for a unit or two.
    if (random() % 4 == 0) point = {-200'000, 0, 20'000 + any(2)};
    points.push_back(point);
  }
  return points;
}

inline std::vector<RayHit> project_on_device(const MadeRays& rays, const std::vector<std::vector<GridPoint>>& clouds,
                                             const std::vector<kernels::RigidMove>& moves, unsigned max_blocks) {
  const kernels::RayView host = rays.view();
  DeviceBuffer<kernels::RayRing> rings(rays.rings);
  DeviceBuffer<kernels::Direction> table(
      std::vector<kernels::Direction>(host.steps.table, host.steps.table + host.steps.size));
  DeviceBuffer<std::uint16_t> starts(
      std::vector<std::uint16_t>(host.steps.starts, host.steps.starts + kernels::StepSearch::kStarts));
  std::vector<GridPoint> all;
  for (const auto& cloud : clouds) all.insert(all.end(), cloud.begin(), cloud.end());
  DeviceBuffer<GridPoint> points(all);
  std::vector<kernels::ProjectedCloud> projected;
  std::size_t at = 0;
  for (std::size_t i = 0; i < clouds.size(); ++i) {
    projected.push_back({points.data() + at, clouds[i].size(), moves[i]});
    at += clouds[i].size();
  }
  DeviceBuffer<RayHit> hits(host.slots());
  const kernels::RayView view{rings.data(), rays.rings.size(), {table.data(), host.steps.size, starts.data()}};
  EXPECT_EQ(kernels::project_async(projected, view, hits.data(), nullptr, max_blocks), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return hits.get();
}

/// As lidar/predict does: point after point.
inline std::vector<RayHit> project_on_host(const MadeRays& rays, const std::vector<std::vector<GridPoint>>& clouds,
                                           const std::vector<kernels::RigidMove>& moves) {
  const kernels::RayView view = rays.view();
  std::vector<RayHit> hits(view.slots());
  for (std::size_t i = 0; i < clouds.size(); ++i)
    for (const GridPoint& point : clouds[i]) {
      GridPoint moved{};
      RayHit hit;
      if (!moves[i](point, moved)) continue;
      const std::size_t slot = view.hit_of(moved, hit);
      if (slot != kernels::RayView::kNoSlot) hits[slot] = std::min(hits[slot], hit);
    }
  return hits;
}

/// A turn about z by a direction, and a shift.
inline kernels::RigidMove turn_and_shift(std::int64_t x, std::int64_t y) {
  kernels::RigidMove move;
  const auto turn = codec::lidar::direction_of(x, y);
  constexpr unsigned kDown = kernels::kDirectionBits - kernels::RigidMove::kMatrixBits;
  const std::int64_t rotation[3][3] = {{turn.x >> kDown, -(turn.y >> kDown), 0},
                                       {turn.y >> kDown, turn.x >> kDown, 0},
                                       {0, 0, INT64_C(1) << kernels::RigidMove::kMatrixBits}};
  for (unsigned row = 0; row < 3; ++row)
    for (unsigned column = 0; column < 3; ++column) move.from[row][column] = rotation[row][column];
  for (unsigned axis = 0; axis < 3; ++axis) move.to[axis][axis] = INT64_C(1) << kernels::RigidMove::kMatrixBits;
  move.shift[0] = x % 1000;
  return move;
}

inline void expect_same_hits(const std::vector<RayHit>& got, const std::vector<RayHit>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  std::size_t there = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].first, expected[i].first) << i;
    ASSERT_EQ(got[i].second, expected[i].second) << i;
    there += expected[i].is_there() ? 1 : 0;
  }
  EXPECT_GT(there, 3U);
}

}  // namespace quern::testing

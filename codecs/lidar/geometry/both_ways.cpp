#include "codecs/lidar/geometry/both_ways.h"

#include <algorithm>
#include <optional>

#include "codecs/lidar/geometry/near_points.h"
#include "libcompress/core/run_tasks.h"

namespace quern::codec::lidar {
namespace {

using Nearest = NearPoints::Nearest;

/// Points of a task.
constexpr std::size_t kChunk = 1U << 14;

/// Calls find(begin, end) for chunks of `count` points.
template <class Find>
Status in_chunks(TaskRunner& runner, std::size_t count, const Find& find) {
  return run_tasks(runner, (count + kChunk - 1) / kChunk, [&](std::size_t i) {
    find(i * kChunk, std::min(count, (i + 1) * kChunk));
    return Status();
  });
}

}  // namespace

Result<BothWays> check_both_ways(std::span<const FinePoint> points, std::span<const FinePoint> decoded,
                                 std::int64_t reach, TaskRunner& runner) {
  std::optional<NearPoints> near_decoded, near_points;
  QUERN_RETURN_IF_ERROR(run_tasks(runner, 2, [&](std::size_t i) {
    if (i == 0) near_decoded.emplace(decoded, reach, 0);
    if (i == 1) near_points.emplace(points, reach, 1);
    return Status();
  }));

  Vector<Nearest> of_points(points.size());
  QUERN_RETURN_IF_ERROR(in_chunks(runner, points.size(), [&](std::size_t begin, std::size_t end) {
    // Of neighbours in the scan the same decoded point is the nearest as a rule.
    Nearest hint;
    for (std::size_t i = begin; i < end; ++i) {
      if (hint.index != UINT32_MAX) hint.square = squared_distance(points[i], decoded[hint.index]);
      of_points[i] = hint = near_decoded->nearest(points[i], hint);
    }
  }));

  BothWays result;
  // For each decoded point the nearest of those points that it is the nearest to.
  Vector<Nearest> of_decoded(decoded.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Nearest& nearest = of_points[i];
    if (nearest.index == UINT32_MAX) {
      result.uncovered.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    result.largest_square = std::max(result.largest_square, nearest.square);
    Nearest& hint = of_decoded[nearest.index];
    if (nearest.square < hint.square) hint = {nearest.square, static_cast<std::uint32_t>(i)};
  }

  QUERN_RETURN_IF_ERROR(in_chunks(runner, decoded.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) of_decoded[i] = near_points->nearest(decoded[i], of_decoded[i]);
  }));
  result.nearest_source.reserve(decoded.size());
  for (const Nearest& nearest : of_decoded) {
    result.nearest_source.push_back(nearest.index);
    if (nearest.index == UINT32_MAX) {
      ++result.strays;
    } else {
      result.largest_square = std::max(result.largest_square, nearest.square);
    }
  }
  return result;
}

}  // namespace quern::codec::lidar

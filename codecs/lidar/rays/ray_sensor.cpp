#include "codecs/lidar/rays/ray_sensor.h"

#include <algorithm>

namespace quern::codec::lidar {
namespace {

/// A milliradian and a half: for clouds of no sensor.
constexpr Direction kDefaultStep{1073740616, 1610612};

}  // namespace

RaySensor guess_sensor(std::span<const FinePoint> points, std::uint32_t chains, std::int32_t height) {
  RaySensor sensor;
  sensor.chains = chains;
  sensor.height = height;
  Vector<Direction> turns;
  std::size_t left = 0;
  for (std::size_t i = chains; i < points.size(); ++i) {
    const Direction from = direction_of(points[i - chains][0], points[i - chains][1]);
    const Direction to = direction_of(points[i][0], points[i][1]);
    const Direction turn = turned(to, {from.x, -from.y});
    if (turn.x <= 0 || turn.y == 0) continue;
    left += turn.y > 0 ? 1 : 0;
    turns.push_back({turn.x, turn.y < 0 ? -turn.y : turn.y});
  }
  sensor.clockwise = 2 * left < turns.size();
  sensor.step = kDefaultStep;
  if (turns.empty()) return sensor;
  const auto middle = turns.begin() + static_cast<std::ptrdiff_t>(turns.size() / 2);
  std::nth_element(turns.begin(), middle, turns.end(),
                   [](const Direction& a, const Direction& b) { return a.y < b.y; });
  // Steps below half a milliradian would make a long table and code nothing better.
  if (middle->y > kOne >> 11) sensor.step = *middle;
  return sensor;
}

}  // namespace quern::codec::lidar

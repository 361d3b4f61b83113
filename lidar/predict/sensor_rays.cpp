#include "lidar/predict/sensor_rays.h"

#include <algorithm>
#include <array>

namespace quern::lidar {
namespace {

using codec::lidar::Direction;

constexpr std::int64_t kNearest = 10000;  ///< units; what lies nearer is the vehicle
constexpr std::size_t kLeastRings = 8;
constexpr std::size_t kLeastRingPoints = 64;
/// Slopes nearer to each other than this (units of 2^-16) are one ring.
constexpr std::int32_t kLeastGap = 24;

struct Return {
  double range = 0;
  double z = 0;
};

Direction azimuth_of(const UnitPoint& point) { return codec::lidar::direction_of(point[0], point[1]); }

/// Sine of the turn from a point to the next, the median of those that are not 0; positive counter-clockwise.
std::int64_t median_turn(std::span<const UnitPoint> scan) {
  Vector<std::int64_t> sines;
  for (std::size_t i = 1; i < scan.size(); ++i) {
    const Direction a = azimuth_of(scan[i - 1]);
    const Direction b = azimuth_of(scan[i]);
    const std::int64_t sine = (a.x * b.y - a.y * b.x) >> codec::lidar::kDirectionBits;
    if (sine != 0) sines.push_back(sine);
  }
  if (sines.empty()) return 0;
  const auto middle = sines.begin() + static_cast<std::ptrdiff_t>(sines.size() / 2);
  std::nth_element(sines.begin(), middle, sines.end());
  return *middle;
}

/// Least squares of z over range with weights 1 / range^2, three times, each without what lay 2 mrad beside the last.
Ring fit(std::span<const Return> returns) {
  constexpr double kBeside = 2e-3;
  double slope = 0, height = 0;
  for (int round = 0; round < 3; ++round) {
    double weights = 0, sum_r = 0, sum_z = 0, sum_rr = 0, sum_rz = 0;
    for (const Return& one : returns) {
      const double off = (one.z - height - slope * one.range) / one.range;
      if (round > 0 && (off > kBeside || off < -kBeside)) continue;
      const double weight = 1 / (one.range * one.range);
      weights += weight;
      sum_r += weight * one.range;
      sum_z += weight * one.z;
      sum_rr += weight * one.range * one.range;
      sum_rz += weight * one.range * one.z;
    }
    const double spread = weights * sum_rr - sum_r * sum_r;
    if (!(spread > 0)) break;
    slope = (weights * sum_rz - sum_r * sum_z) / spread;
    height = (sum_z - slope * sum_r) / weights;
  }
  const auto whole = [](double value, std::int32_t most) {
    return static_cast<std::int32_t>(std::clamp(value, -static_cast<double>(most), static_cast<double>(most)));
  };
  return {whole(slope * 65536, SensorRays::kMostSlope), whole(height, SensorRays::kMostHeight)};
}

}  // namespace

bool are_rays(const SensorRays& rays) {
  constexpr std::size_t kMostRays = std::size_t{1} << 20;
  if (rays.rings.empty() || rays.rings.size() > SensorRays::kMostRings) return false;
  if (rays.step.x < 0 || rays.step.x > codec::lidar::kOne || rays.step.y < SensorRays::kLeastSine ||
      rays.step.y > codec::lidar::kOne)
    return false;
  for (std::size_t i = 0; i < rays.rings.size(); ++i) {
    const Ring& ring = rays.rings[i];
    if (ring.slope < -SensorRays::kMostSlope || ring.slope > SensorRays::kMostSlope ||
        ring.height < -SensorRays::kMostHeight || ring.height > SensorRays::kMostHeight ||
        (i > 0 && ring.slope <= rays.rings[i - 1].slope))
      return false;
  }
  const codec::lidar::StepTable table(rays.step);
  return static_cast<std::size_t>(2 * table.most() + 1) * rays.rings.size() <= kMostRays;
}

std::optional<SensorRays> find_rays(std::span<const UnitPoint> scan) {
  const std::int64_t turn = median_turn(scan);
  SensorRays rays;
  rays.step.y = turn < 0 ? -turn : turn;
  if (rays.step.y < SensorRays::kLeastSine || rays.step.y > codec::lidar::kOne / 4) return std::nullopt;
  constexpr std::uint64_t kSquare = static_cast<std::uint64_t>(codec::lidar::kOne) * codec::lidar::kOne;
  rays.step.x =
      static_cast<std::int64_t>(kernels::integer_root(kSquare - static_cast<std::uint64_t>(rays.step.y * rays.step.y)));
  Vector<Return> returns;
  const auto close_ring = [&] {
    if (returns.size() >= kLeastRingPoints) rays.rings.push_back(fit(returns));
    returns.clear();
  };
  for (std::size_t i = 0; i < scan.size(); ++i) {
    const auto [x, y, z] = scan[i];
    if (i > 0 && returns.size() >= kLeastRingPoints && x > 0) {
      const bool was_before = turn > 0 ? scan[i - 1][1] < 0 : scan[i - 1][1] >= 0;
      const bool is_behind = turn > 0 ? y >= 0 : y < 0;
      if (was_before && is_behind) close_ring();
    }
    const auto range = kernels::integer_root(static_cast<std::uint64_t>(x * x + y * y));
    if (range >= kNearest) returns.push_back({static_cast<double>(range), static_cast<double>(z)});
  }
  close_ring();
  std::sort(rays.rings.begin(), rays.rings.end(),
            [](const Ring& a, const Ring& b) { return a.slope != b.slope ? a.slope < b.slope : a.height < b.height; });
  const auto same = [](const Ring& a, const Ring& b) { return b.slope - a.slope < kLeastGap; };
  rays.rings.erase(std::unique(rays.rings.begin(), rays.rings.end(), same), rays.rings.end());
  if (rays.rings.size() < kLeastRings || !are_rays(rays)) return std::nullopt;
  return rays;
}

}  // namespace quern::lidar

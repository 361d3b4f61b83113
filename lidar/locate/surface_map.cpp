#include "lidar/locate/surface_map.h"

#include <cmath>

namespace quern::lidar {
namespace {

constexpr double kNearSide = 0.05;  ///< of cubes that tell what is near
constexpr int kNearCubes = 2;
constexpr double kLeastPoints = 6;

/// Cubes are numbered from 2^20 below the origin on each axis.
std::uint64_t cube_of(const std::array<std::int64_t, 3>& index) {
  std::uint64_t key = 0;
  for (const std::int64_t i : index) key = key << 21 | (static_cast<std::uint64_t>(i + (1 << 20)) & ((1 << 21) - 1));
  return key;
}

std::array<std::int64_t, 3> index_of(const Spot& place, double side) {
  std::array<std::int64_t, 3> out{};
  for (std::size_t i = 0; i < 3; ++i) out[i] = static_cast<std::int64_t>(std::floor(place[i] / side));
  return out;
}

struct Sums {
  double count = 0;
  Spot first{};
  std::array<double, 6> second{};  ///< xx, xy, xz, yy, yz, zz
};

/// The eigenvector of the least eigenvalue of a symmetric matrix, by Jacobi's rotations; eigenvalues rise.
struct Least {
  Spot vector{};
  std::array<double, 3> values{};
};
Least least_of(std::array<std::array<double, 3>, 3> m) {
  std::array<std::array<double, 3>, 3> v{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  for (int sweep = 0; sweep < 12; ++sweep)
    for (std::size_t p = 0; p < 2; ++p)
      for (std::size_t q = p + 1; q < 3; ++q) {
        if (std::fabs(m[p][q]) < 1e-15) continue;
        const double theta = (m[q][q] - m[p][p]) / (2 * m[p][q]);
        const double t = (theta >= 0 ? 1 : -1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (std::size_t k = 0; k < 3; ++k) {
          const double a = m[k][p], b = m[k][q];
          m[k][p] = c * a - s * b;
          m[k][q] = s * a + c * b;
        }
        for (std::size_t k = 0; k < 3; ++k) {
          const double a = m[p][k], b = m[q][k];
          m[p][k] = c * a - s * b;
          m[q][k] = s * a + c * b;
        }
        for (std::size_t k = 0; k < 3; ++k) {
          const double a = v[k][p], b = v[k][q];
          v[k][p] = c * a - s * b;
          v[k][q] = s * a + c * b;
        }
      }
  std::array<std::size_t, 3> order{0, 1, 2};
  if (m[order[1]][order[1]] < m[order[0]][order[0]]) std::swap(order[0], order[1]);
  if (m[order[2]][order[2]] < m[order[1]][order[1]]) std::swap(order[1], order[2]);
  if (m[order[1]][order[1]] < m[order[0]][order[0]]) std::swap(order[0], order[1]);
  Least out;
  for (std::size_t k = 0; k < 3; ++k) {
    out.vector[k] = v[k][order[0]];
    out.values[k] = m[order[k]][order[k]];
  }
  return out;
}

SurfaceMap::Plane plane_of(const Sums& sums) {
  SurfaceMap::Plane plane;
  if (sums.count < kLeastPoints) return plane;
  for (std::size_t i = 0; i < 3; ++i) plane.mean[i] = sums.first[i] / sums.count;
  std::array<std::array<double, 3>, 3> m{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = i; k < 3; ++k)
      m[i][k] = m[k][i] = sums.second[at++] / sums.count - plane.mean[i] * plane.mean[k];
  const Least least = least_of(m);
  plane.normal = least.vector;
  if (least.values[1] > 1e-9)
    plane.weight = 1 - std::fmin(1, std::sqrt(std::fmax(0, least.values[0]) / least.values[1]));
  return plane;
}

/// Solves m x = b for a positive definite m, by Cholesky's way; false where it is not.
bool solve(std::array<std::array<double, 6>, 6> m, std::array<double, 6> b, std::array<double, 6>& x) {
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t k = 0; k <= i; ++k) {
      double sum = m[i][k];
      for (std::size_t j = 0; j < k; ++j) sum -= m[i][j] * m[k][j];
      if (i == k && !(sum > 0)) return false;
      m[i][k] = i == k ? std::sqrt(sum) : sum / m[k][k];
    }
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j < i; ++j) b[i] -= m[i][j] * b[j];
    b[i] /= m[i][i];
  }
  for (std::size_t i = 6; i-- > 0;) {
    for (std::size_t j = i + 1; j < 6; ++j) b[i] -= m[j][i] * b[j];
    b[i] /= m[i][i];
  }
  x = b;
  return true;
}

}  // namespace

SurfaceMap::SurfaceMap(std::span<const Spot> points) {
  met_.reserve(points.size());
  for (const Spot& point : points) met_.insert(cube_of(index_of(point, kNearSide)));
  for (std::size_t level = 0; level < kSides.size(); ++level) {
    std::unordered_map<std::uint64_t, Sums> cubes;
    for (const Spot& point : points) {
      Sums& sums = cubes[cube_of(index_of(point, kSides[level]))];
      ++sums.count;
      std::size_t at = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        sums.first[i] += point[i];
        for (std::size_t k = i; k < 3; ++k) sums.second[at++] += point[i] * point[k];
      }
    }
    for (const auto& [key, sums] : cubes)
      if (const Plane plane = plane_of(sums); plane.weight > 0) planes_[level].emplace(key, plane);
  }
}

const SurfaceMap::Plane* SurfaceMap::plane_at(std::size_t level, const Spot& place) const {
  const auto found = planes_[level].find(cube_of(index_of(place, kSides[level])));
  return found == planes_[level].end() ? nullptr : &found->second;
}

bool SurfaceMap::is_near(const Spot& place) const {
  const auto [x, y, z] = index_of(place, kNearSide);
  for (int dx = -kNearCubes; dx <= kNearCubes; ++dx)
    for (int dy = -kNearCubes; dy <= kNearCubes; ++dy)
      for (int dz = -kNearCubes; dz <= kNearCubes; ++dz)
        if (dx * dx + dy * dy + dz * dz <= kNearCubes * kNearCubes &&
            met_.count(cube_of({x + dx, y + dy, z + dz})) != 0)
          return true;
  return false;
}

Rigid align(const SurfaceMap& map, std::span<const Spot> scan, Rigid pose, std::size_t level, int rounds) {
  const double scale = 0.2 * SurfaceMap::kSides[level];
  for (int round = 0; round < rounds; ++round) {
    std::array<std::array<double, 6>, 6> m{};
    std::array<double, 6> b{};
    for (const Spot& point : scan) {
      const Spot place = pose(point);
      const SurfaceMap::Plane* const plane = map.plane_at(level, place);
      if (plane == nullptr) continue;
      const Spot& n = plane->normal;
      const Spot arm{place[0] - pose.at[0], place[1] - pose.at[1], place[2] - pose.at[2]};
      const double off =
          n[0] * (place[0] - plane->mean[0]) + n[1] * (place[1] - plane->mean[1]) + n[2] * (place[2] - plane->mean[2]);
      const std::array<double, 6> j{arm[1] * n[2] - arm[2] * n[1],
                                    arm[2] * n[0] - arm[0] * n[2],
                                    arm[0] * n[1] - arm[1] * n[0],
                                    n[0],
                                    n[1],
                                    n[2]};
      const double weight = plane->weight / (1 + off * off / (scale * scale));
      for (std::size_t i = 0; i < 6; ++i) {
        b[i] -= weight * j[i] * off;
        for (std::size_t k = 0; k <= i; ++k) m[i][k] += weight * j[i] * j[k];
      }
    }
    for (std::size_t i = 0; i < 6; ++i) m[i][i] = m[i][i] * 1.0001 + 1e-9;
    std::array<double, 6> step{};
    if (!solve(m, b, step)) return pose;
    pose = pose.nudged(step, pose.at);
    double length = 0;
    for (const double part : step) length += part * part;
    if (length < 1e-10) break;
  }
  return pose;
}

}  // namespace quern::lidar

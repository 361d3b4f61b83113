#include "datasets/lidar/shapes.h"

#include <algorithm>
#include <cmath>

namespace quern::drives {
namespace {

constexpr double kLeafCell = 0.18;
/// A ray that passes a cell with leaves meets one with this probability.
constexpr double kLeafHit = 0.27;
constexpr double kStorey = 3.0;
constexpr double kRecess = 0.18;
constexpr double kPicket = 0.16;

double fractional(double value) { return value - std::floor(value); }

struct Interval {
  double enter = 0;
  double leave = 1e30;
  int axis = -1;

  void cut(double from, double along, double half, int cut_axis) {
    if (std::abs(along) < 1e-12) {
      if (std::abs(from) > half) leave = -1;
      return;
    }
    const double a = (-half - from) / along;
    const double b = (half - from) / along;
    if (std::min(a, b) > enter) {
      enter = std::min(a, b);
      axis = cut_axis;
    }
    leave = std::min(leave, std::max(a, b));
  }
};

Interval within_box(const Ray& ray, const Vector3& half) {
  Interval inside;
  inside.cut(ray.from.x, ray.along.x, half.x, 0);
  inside.cut(ray.from.y, ray.along.y, half.y, 1);
  inside.cut(ray.from.z, ray.along.z, half.z, 2);
  return inside;
}

Interval within_ellipsoid(const Ray& ray, const Vector3& half) {
  const Vector3 from = {ray.from.x / half.x, ray.from.y / half.y, ray.from.z / half.z};
  const Vector3 along = {ray.along.x / half.x, ray.along.y / half.y, ray.along.z / half.z};
  const double a = along.x * along.x + along.y * along.y + along.z * along.z;
  const double b = from.x * along.x + from.y * along.y + from.z * along.z;
  const double c = from.x * from.x + from.y * from.y + from.z * from.z - 1;
  const double root = b * b - a * c;
  if (root <= 0) return {0, -1, -1};
  return {std::max((-b - std::sqrt(root)) / a, 0.0), (-b + std::sqrt(root)) / a, -1};
}

}  // namespace

void Shape::meet(const Ray& ray, Random& random, Meeting& meeting) const {
  const double x = ray.from.x - centre.x;
  const double y = ray.from.y - centre.y;
  const Ray turned = {
      {cosine * x + sine * y, cosine * y - sine * x, ray.from.z - centre.z},
      {cosine * ray.along.x + sine * ray.along.y, cosine * ray.along.y - sine * ray.along.x, ray.along.z}};
  switch (kind) {
    case Kind::cylinder: return meet_cylinder(turned, meeting);
    case Kind::canopy:
    case Kind::hedge: {
      const Interval inside = kind == Kind::canopy ? within_ellipsoid(turned, half) : within_box(turned, half);
      if (inside.enter < inside.leave) meet_leaves(ray, inside.enter, inside.leave, random, meeting);
      return;
    }
    default: return meet_box(turned, random, meeting);
  }
}

void Shape::meet_box(const Ray& turned, Random& random, Meeting& meeting) const {
  const Interval inside = within_box(turned, half);
  if (inside.axis < 0 || inside.enter >= inside.leave || inside.enter >= meeting.range) return;
  const double normal = inside.axis == 0 ? turned.along.x : inside.axis == 1 ? turned.along.y : turned.along.z;
  Meeting met = {inside.enter, std::abs(normal), material};
  const double along_wall =
      inside.axis == 0 ? turned.from.y + turned.along.y * inside.enter : turned.from.x + turned.along.x * inside.enter;
  const double up = turned.from.z + turned.along.z * inside.enter + half.z;
  if (kind == Kind::fence && fractional(along_wall / kPicket) < 0.5 && fractional(up / 0.7) > 0.12) return;
  if (kind == Kind::facade && inside.axis != 2) {
    // Windows of 1.2 m by 1.4 m lie behind the wall; a storey is 3 m.
    const double across = fractional((along_wall + 100) / 2.6);
    const double above = fractional(up / kStorey) * kStorey;
    if (across > 0.27 && across < 0.73 && above > 0.9 && above < 2.3) {
      met.range += kRecess / std::max(met.incidence, 0.15);
      met.material = random.chance(0.5) ? Material::glass : material;
    }
  }
  if (met.range < meeting.range) meeting = met;
}

void Shape::meet_cylinder(const Ray& turned, Meeting& meeting) const {
  const double a = turned.along.x * turned.along.x + turned.along.y * turned.along.y;
  const double b = turned.from.x * turned.along.x + turned.from.y * turned.along.y;
  const double c = turned.from.x * turned.from.x + turned.from.y * turned.from.y - half.x * half.x;
  const double root = b * b - a * c;
  if (root <= 0 || a < 1e-12) return;
  const double range = (-b - std::sqrt(root)) / a;
  if (range <= 0 || range >= meeting.range || std::abs(turned.from.z + turned.along.z * range) > half.z) return;
  meeting = {range, std::sqrt(root) / half.x, material};
}

/// Cells of space hold leaves or do not, for as long as the season lasts: what a ray meets today is near what another
/// one met yesterday, but a ray may pass a cell by chance.
void Shape::meet_leaves(const Ray& ray, double enter, double leave, Random& random, Meeting& meeting) const {
  const double end = std::min(leave, meeting.range);
  for (double range = enter + kLeafCell * random.uniform(); range < end; range += kLeafCell) {
    const auto cell = [&](double from, double along) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor((from + along * range) / kLeafCell)));
    };
    const std::uint64_t place =
        mixed(seed, cell(ray.from.x, ray.along.x), cell(ray.from.y, ray.along.y), cell(ray.from.z, ray.along.z));
    if (fraction(place) >= density || !random.chance(kLeafHit)) continue;
    meeting = {range, 0.5, Material::leaves};
    return;
  }
}

}  // namespace quern::drives

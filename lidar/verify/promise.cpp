// The kinds of promises, each by exact integers where both clouds have such coordinates.
#include "lidar/verify/promise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "lidar/verify/exact_check.h"

namespace quern::lidar {
namespace {

constexpr std::uint64_t kStepsPerMetre = 10000;

bool are_integers(const PointCloud& cloud) { return cloud.kind == CoordinateKind::scaled; }

/// Whether words of both mean the same, so that exact integers can be compared.
bool are_comparable(const PointCloud& a, const PointCloud& b) {
  if (a.kind != b.kind || a.kind == CoordinateKind::f64) return false;
  return a.kind == CoordinateKind::f32 || a.grid == b.grid;
}

exact::Bound exact_bound(const PointCloud& cloud, const Promise& promise) {
  return {promise.units, are_integers(cloud) ? 1 : kStepsPerMetre};
}

std::uint64_t beyond(const Vector<double>& distances, double bound) {
  return static_cast<std::uint64_t>(
      std::count_if(distances.begin(), distances.end(), [&](double d) { return d > bound; }));
}

double pair_distance(const PointCloud& a, const PointCloud& b, std::uint64_t point) {
  const auto p = a.position(point);
  const auto q = b.position(point);
  return std::sqrt((p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) + (p[2] - q[2]) * (p[2] - q[2]));
}

void check_set(const PointCloud& original, const PointCloud& decoded, const Promise& promise, PromiseCheck& out) {
  // Distances in binary64 far below the bound need no second look.
  const double surely = promise.bound * (1 - 1e-6);
  const bool is_sure = out.distances.forward.max <= surely && out.distances.backward.max <= surely;
  if (is_sure) return;
  if (!are_comparable(original, decoded)) {
    out.violations = beyond(out.distances.a_to_b, promise.bound) + beyond(out.distances.b_to_a, promise.bound);
    return;
  }
  const auto a = exact::exact_points(original.words, are_integers(original));
  const auto b = exact::exact_points(decoded.words, are_integers(decoded));
  const auto bound = exact_bound(original, promise);
  out.violations = exact::violations(a, b, bound) + exact::violations(b, a, bound);
}

bool has_equal_bits(const PointCloud& a, const PointCloud& b, std::uint64_t point) {
  const std::size_t at = static_cast<std::size_t>(3 * point);
  if (a.kind == CoordinateKind::f64) return std::memcmp(&a.doubles[at], &b.doubles[at], 3 * sizeof(double)) == 0;
  return std::memcmp(&a.words[at], &b.words[at], 3 * sizeof(std::uint32_t)) == 0;
}

void count_pairs(const PointCloud& original, const PointCloud& decoded, const Promise& promise, PromiseCheck& out) {
  const bool bits = promise.kind == PromiseKind::exact;
  if (!bits && are_comparable(original, decoded))
    out.violations =
        exact::pair_violations(original.words, decoded.words, are_integers(original), exact_bound(original, promise));
  for (std::uint64_t i = 0; i < original.points(); ++i) {
    const bool finite = original.is_finite(i) && decoded.is_finite(i);
    const double distance = finite ? pair_distance(original, decoded, i) : 0;
    out.max_pair_distance = std::max(out.max_pair_distance, distance);
    if (bits) {
      out.violations += has_equal_bits(original, decoded, i) ? 0 : 1;
    } else if (!are_comparable(original, decoded)) {
      out.violations += finite && distance <= promise.bound ? 0 : 1;
    }
  }
}

bool have_same_columns(const PointCloud& a, const PointCloud& b) {
  return std::equal(a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end(),
                    [](const CloudColumn& x, const CloudColumn& y) { return x.type == y.type; });
}

std::uint64_t changed_attributes(const PointCloud& a, const PointCloud& b) {
  if (!have_same_columns(a, b)) return std::max<std::uint64_t>(a.points(), 1);
  std::uint64_t changed = 0;
  for (std::uint64_t i = 0; i < a.points(); ++i) {
    bool same = true;
    for (std::size_t c = 0; c < a.columns.size(); ++c) {
      const std::size_t width = dtype_bytes(a.columns[c].type);
      same = same &&
             std::memcmp(a.columns[c].values.data() + i * width, b.columns[c].values.data() + i * width, width) == 0;
    }
    changed += same ? 0 : 1;
  }
  return changed;
}

}  // namespace

Result<PromiseCheck> check_promise(const PointCloud& original, const PointCloud& decoded, const Promise& promise,
                                   TaskRunner& runner) {
  PromiseCheck out;
  QUERN_ASSIGN_OR_RETURN(out.distances, measure_distances(original, decoded, runner));
  if (promise.kind == PromiseKind::set) {
    check_set(original, decoded, promise, out);
    return out;
  }
  out.same_points = original.points() == decoded.points() &&
                    (promise.kind != PromiseKind::exact || original.kind == decoded.kind) &&
                    (original.kind != CoordinateKind::scaled || original.grid == decoded.grid);
  if (!out.same_points) return out;
  count_pairs(original, decoded, promise, out);
  out.attribute_changes = changed_attributes(original, decoded);
  return out;
}

}  // namespace quern::lidar

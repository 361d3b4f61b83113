#include "codecs/lidar/prediction/expected_sites.h"

#include <algorithm>
#include <utility>

#include "codecs/lidar/octree/morton.h"
#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/writer.h"

namespace quern::codec::lidar {
namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// The nearest site whose coordinates have this parity, in spacings, and the squared distance to it in units.
std::pair<Site, std::int64_t> nearest_of_parity(const PredictedPoint& point, const Lattice& lattice, unsigned parity) {
  const std::int64_t step = lattice.centred ? 2 : 1;
  const std::int64_t from = static_cast<std::int64_t>(parity) * lattice.spacing;
  const std::int64_t pitch = step * lattice.spacing;
  Site site;
  std::int64_t square = 0;
  for (unsigned axis = 0; axis < 3; ++axis) {
    const std::int64_t whole = floor_divide(2 * (point[axis] - from) + pitch, 2 * pitch);
    site[axis] = step * whole + static_cast<std::int64_t>(parity);
    const std::int64_t off = point[axis] - site[axis] * lattice.spacing;
    square += off * off;
  }
  return {site, square};
}

/// Rising, each once. Where they lie so near to each other that a number holds one, numbers are sorted: in a third of
/// the time.
void sort_sites(Vector<Site>& sites) {
  // Neighbouring rays often meet the same site.
  sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
  if (sites.empty()) return;
  Site low = sites.front();
  Site high = low;
  for (const Site& site : sites)
    for (unsigned axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], site[axis]);
      high[axis] = std::max(high[axis], site[axis]);
    }
  const auto sort_once = [](auto& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  };
  bool fits = true;
  for (unsigned axis = 0; axis < 3; ++axis) fits = fits && high[axis] - low[axis] < INT64_C(1) << kSiteBits;
  if (!fits) return sort_once(sites);
  Vector<std::uint64_t> packed;
  packed.reserve(sites.size());
  const auto from = [&](const Site& site, unsigned axis) { return static_cast<std::uint64_t>(site[axis] - low[axis]); };
  for (const Site& site : sites) packed.push_back(pack_site(from(site, 0), from(site, 1), from(site, 2)));
  sort_once(packed);
  sites.resize(packed.size());
  for (std::size_t i = 0; i < packed.size(); ++i) {
    const auto at = unpack_site(packed[i]);
    for (unsigned axis = 0; axis < 3; ++axis) sites[i][axis] = low[axis] + static_cast<std::int64_t>(at[axis]);
  }
}

}  // namespace

bool is_prediction(Prediction prediction) {
  for (const PredictedPoint& point : prediction)
    for (const std::int64_t at : point)
      if (at < -kMostPredictedUnits || at > kMostPredictedUnits) return false;
  return true;
}

Vector<Site> expected_sites(Prediction prediction, const Lattice& lattice) {
  Vector<Site> sites;
  sites.reserve(prediction.size());
  for (const PredictedPoint& point : prediction) {
    auto [site, square] = nearest_of_parity(point, lattice, 0);
    if (lattice.centred)
      if (const auto [odd, odd_square] = nearest_of_parity(point, lattice, 1); odd_square < square) site = odd;
    sites.push_back(site);
  }
  sort_sites(sites);
  return sites;
}

ExpectedCubes expected_cubes(std::span<const Site> sites, const Site& origin, unsigned depth, bool centred) {
  const unsigned half_bits = centred ? 1 : 0;
  const std::int64_t side = INT64_C(1) << (depth + half_bits);
  Vector<std::uint64_t> orders;
  for (const Site& site : sites) {
    std::array<std::uint64_t, 3> at{};
    bool inside = true;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const std::int64_t from = site[axis] - origin[axis];
      inside = inside && from >= 0 && from < side;
      at[axis] = static_cast<std::uint64_t>(from) >> half_bits;
    }
    if (inside)
      orders.push_back(morton(at[0], at[1], at[2]) << half_bits |
                       (centred ? static_cast<std::uint64_t>(site[0] - origin[0]) & 1 : 0));
  }
  std::sort(orders.begin(), orders.end());
  ExpectedCubes expected;
  for (const std::uint64_t order : orders) {
    const std::uint64_t cube = order >> half_bits;
    const auto half = static_cast<std::uint8_t>(centred ? 1U << (order & 1) : 1U);
    if (expected.cubes.empty() || expected.cubes.back() != cube) {
      expected.cubes.push_back(cube);
      expected.halves.push_back(half);
    } else {
      expected.halves.back() = static_cast<std::uint8_t>(expected.halves.back() | half);
    }
  }
  return expected;
}

std::uint32_t prediction_check(Prediction prediction) {
  Vector<std::uint8_t> bytes;
  bytes.reserve(24 * prediction.size());
  Writer out(bytes);
  for (const PredictedPoint& point : prediction)
    for (const std::int64_t at : point) out.u64(static_cast<std::uint64_t>(at));
  return static_cast<std::uint32_t>(checksum64(bytes));
}

}  // namespace quern::codec::lidar

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
    const std::int64_t whole = floor_divide(2 * (point.at[axis] - from) + pitch, 2 * pitch);
    site[axis] = step * whole + static_cast<std::int64_t>(parity);
    const std::int64_t off = point.at[axis] - site[axis] * lattice.spacing;
    square += off * off;
  }
  return {site, square};
}

/// Sorts sites and adds the weights of equal ones. Where they lie so near to each other that a number holds one,
/// numbers are sorted: in a third of the time.
template <class Key, class Unpack>
ExpectedSites add_up(Vector<std::pair<Key, std::uint32_t>>& weighed, const Unpack& unpack) {
  std::sort(weighed.begin(), weighed.end());
  ExpectedSites expected;
  for (std::size_t i = 0; i < weighed.size();) {
    std::uint32_t sum = 0;
    const Key& key = weighed[i].first;
    expected.sites.push_back(unpack(key));
    for (; i < weighed.size() && weighed[i].first == key; ++i) sum += weighed[i].second;
    expected.weights.push_back(static_cast<std::uint8_t>(std::min<std::uint32_t>(sum, kMostSiteWeight)));
  }
  return expected;
}

ExpectedSites sort_sites(Vector<std::pair<Site, std::uint32_t>>& weighed) {
  if (weighed.empty()) return {};
  Site low = weighed.front().first;
  Site high = low;
  for (const auto& [site, weight] : weighed)
    for (unsigned axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], site[axis]);
      high[axis] = std::max(high[axis], site[axis]);
    }
  bool fits = true;
  for (unsigned axis = 0; axis < 3; ++axis) fits = fits && high[axis] - low[axis] < INT64_C(1) << kSiteBits;
  if (!fits) return add_up(weighed, [](const Site& site) { return site; });
  Vector<std::pair<std::uint64_t, std::uint32_t>> packed;
  packed.reserve(weighed.size());
  const auto from = [&](const Site& site, unsigned axis) { return static_cast<std::uint64_t>(site[axis] - low[axis]); };
  for (const auto& [site, weight] : weighed)
    packed.emplace_back(pack_site(from(site, 0), from(site, 1), from(site, 2)), weight);
  return add_up(packed, [&](std::uint64_t key) {
    const auto at = unpack_site(key);
    Site site;
    for (unsigned axis = 0; axis < 3; ++axis) site[axis] = low[axis] + static_cast<std::int64_t>(at[axis]);
    return site;
  });
}

ExpectedCubes cubes_of(const ExpectedSites& sites, const Site& origin, unsigned depth, bool centred) {
  const unsigned half_bits = centred ? 1 : 0;
  const std::int64_t side = INT64_C(1) << (depth + half_bits);
  Vector<std::pair<std::uint64_t, std::uint8_t>> orders;
  for (std::size_t i = 0; i < sites.sites.size(); ++i) {
    const Site& site = sites.sites[i];
    std::array<std::uint64_t, 3> at{};
    bool inside = true;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const std::int64_t from = site[axis] - origin[axis];
      inside = inside && from >= 0 && from < side;
      at[axis] = static_cast<std::uint64_t>(from) >> half_bits;
    }
    if (inside)
      orders.emplace_back(morton(at[0], at[1], at[2]) << half_bits |
                              (centred ? static_cast<std::uint64_t>(site[0] - origin[0]) & 1 : 0),
                          sites.weights[i]);
  }
  std::sort(orders.begin(), orders.end());
  ExpectedCubes expected;
  for (const auto& [order, weight] : orders) {
    const std::uint64_t cube = order >> half_bits;
    const auto half = static_cast<std::uint8_t>(centred ? 1U << (order & 1) : 1U);
    if (expected.cubes.empty() || expected.cubes.back() != cube) {
      expected.cubes.push_back(cube);
      expected.halves.push_back(half);
      expected.weights.push_back({});
    } else {
      expected.halves.back() = static_cast<std::uint8_t>(expected.halves.back() | half);
    }
    expected.weights.back()[centred ? order & 1 : 0] = weight;
  }
  return expected;
}

}  // namespace

bool is_prediction(Prediction prediction) {
  for (const PredictedPoint& point : prediction) {
    if (point.weight > kMostPredictedWeight) return false;
    for (const std::int64_t at : point.at)
      if (at < -kMostPredictedUnits || at > kMostPredictedUnits) return false;
  }
  return true;
}

bool knows_more(Prediction prediction) {
  return std::any_of(prediction.begin(), prediction.end(), [](const PredictedPoint& one) { return one.weight == 0; });
}

PredictedSites predicted_sites(Prediction prediction, const Lattice& lattice) {
  Vector<std::pair<Site, std::uint32_t>> expected;
  Vector<std::pair<Site, std::uint32_t>> known;
  for (const PredictedPoint& point : prediction) {
    auto& weighed = point.weight == 0 ? known : expected;
    const std::uint32_t weight = std::max<std::uint32_t>(point.weight, 1);
    auto [site, square] = nearest_of_parity(point, lattice, 0);
    if (lattice.centred)
      if (const auto [odd, odd_square] = nearest_of_parity(point, lattice, 1); odd_square < square) site = odd;
    // Neighbouring rays often meet the same site.
    if (!weighed.empty() && weighed.back().first == site) {
      weighed.back().second += weight;
    } else {
      weighed.emplace_back(site, weight);
    }
  }
  return {sort_sites(expected), sort_sites(known)};
}

BlockPrediction block_prediction(const PredictedSites& sites, const Site& origin, unsigned depth, bool centred) {
  return {cubes_of(sites.expected, origin, depth, centred), cubes_of(sites.known, origin, depth, centred)};
}

std::uint32_t prediction_check(Prediction prediction, bool weighed) {
  Vector<std::uint8_t> bytes;
  bytes.reserve(25 * prediction.size());
  Writer out(bytes);
  for (const PredictedPoint& point : prediction) {
    for (const std::int64_t at : point.at) out.u64(static_cast<std::uint64_t>(at));
    if (weighed) out.u8(point.weight);
  }
  return static_cast<std::uint32_t>(checksum64(bytes));
}

}  // namespace quern::codec::lidar

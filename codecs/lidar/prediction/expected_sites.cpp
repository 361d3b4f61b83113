#include "codecs/lidar/prediction/expected_sites.h"

#include <algorithm>
#include <utility>

#include "codecs/lidar/octree/morton.h"
#include "kernels/common/bit_packing.h"
#include "libcompress/format/frame/checksum.h"

namespace quern::codec::lidar {
namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// The site nearest to a point, the even one of equals, in spacings.
Site nearest_site(const PredictedPoint& point, const Lattice& lattice) {
  const std::int64_t step = lattice.centred ? 2 : 1;
  const std::int64_t pitch = step * lattice.spacing;
  Site even;
  Site odd;
  std::int64_t even_square = 0;
  std::int64_t odd_square = 0;
  for (unsigned axis = 0; axis < 3; ++axis) {
    even[axis] = step * floor_divide(2 * point.at[axis] + pitch, 2 * pitch);
    const std::int64_t off = point.at[axis] - even[axis] * lattice.spacing;
    // Of a centred lattice, this is within a spacing: the next odd coordinate is on the side where the point lies.
    const std::int64_t side = off >= 0 ? 1 : -1;
    odd[axis] = even[axis] + side;
    const std::int64_t odd_off = off - side * lattice.spacing;
    even_square += off * off;
    odd_square += odd_off * odd_off;
  }
  return lattice.centred && odd_square < even_square ? odd : even;
}

/// Sorts keys and calls visit(key, sum of the weights of its equals) for each that differs from the one before.
template <class Key, class Visit>
void add_up(Vector<std::pair<Key, std::uint32_t>>& weighed, const Visit& visit) {
  std::sort(weighed.begin(), weighed.end());
  for (std::size_t i = 0; i < weighed.size();) {
    std::uint32_t sum = 0;
    const Key& key = weighed[i].first;
    for (; i < weighed.size() && weighed[i].first == key; ++i) sum += weighed[i].second;
    visit(key, sum);
  }
}

void append(WeighedSites& to, const Site& site, std::uint32_t weight) {
  to.sites.push_back(site);
  to.weights.push_back(weight);
}

/// Sites rising, each once. Where they lie so near to each other that a number holds one, numbers are sorted: in a
/// third of the time.
WeighedSites sort_sites(const WeighedSites& weighed) {
  if (weighed.sites.empty()) return {};
  Site low = weighed.sites.front();
  Site high = low;
  for (const Site& site : weighed.sites)
    for (unsigned axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], site[axis]);
      high[axis] = std::max(high[axis], site[axis]);
    }
  bool fits = true;
  for (unsigned axis = 0; axis < 3; ++axis) fits = fits && high[axis] - low[axis] < INT64_C(1) << kSiteBits;
  WeighedSites sorted;
  const auto sort_as = [&](const auto& pack, const auto& unpack) {
    Vector<std::pair<decltype(pack(low)), std::uint32_t>> packed;
    packed.reserve(weighed.sites.size());
    for (std::size_t i = 0; i < weighed.sites.size(); ++i)
      packed.emplace_back(pack(weighed.sites[i]), weighed.weights[i]);
    add_up(packed, [&](const auto& key, std::uint32_t weight) { append(sorted, unpack(key), weight); });
  };
  const auto from = [&](const Site& site, unsigned axis) { return static_cast<std::uint64_t>(site[axis] - low[axis]); };
  if (fits) {
    sort_as([&](const Site& site) { return pack_site(from(site, 0), from(site, 1), from(site, 2)); },
            [&](std::uint64_t key) {
              const auto at = unpack_site(key);
              Site site;
              for (unsigned axis = 0; axis < 3; ++axis) site[axis] = low[axis] + static_cast<std::int64_t>(at[axis]);
              return site;
            });
  } else {
    sort_as([](const Site& site) { return site; }, [](const Site& site) { return site; });
  }
  return sorted;
}

ExpectedCubes cubes_of(const WeighedSites& sites, const Site& origin, unsigned depth, bool centred) {
  const unsigned half_bits = centred ? 1 : 0;
  const std::int64_t side = INT64_C(1) << (depth + half_bits);
  Vector<std::pair<std::uint64_t, std::uint32_t>> orders;
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
  ExpectedCubes expected;
  add_up(orders, [&](std::uint64_t order, std::uint32_t weight) {
    const std::uint64_t cube = order >> half_bits;
    const auto half = static_cast<std::uint8_t>(centred ? 1U << (order & 1) : 1U);
    if (expected.cubes.empty() || expected.cubes.back() != cube) {
      expected.cubes.push_back(cube);
      expected.halves.push_back(half);
      expected.weights.push_back({});
    } else {
      expected.halves.back() = static_cast<std::uint8_t>(expected.halves.back() | half);
    }
    expected.weights.back()[centred ? order & 1 : 0] = static_cast<std::uint8_t>(std::min(weight, kMostSiteWeight));
  });
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
  WeighedSites expected;
  WeighedSites known;
  for (const PredictedPoint& point : prediction) {
    WeighedSites& weighed = point.weight == 0 ? known : expected;
    const std::uint32_t weight = std::max<std::uint32_t>(point.weight, 1);
    const Site site = nearest_site(point, lattice);
    // Neighbouring rays often meet the same site.
    if (!weighed.sites.empty() && weighed.sites.back() == site) {
      weighed.weights.back() += weight;
    } else {
      append(weighed, site, weight);
    }
  }
  return {sort_sites(expected), std::move(known)};
}

BlockPrediction block_prediction(const PredictedSites& sites, const Site& origin, unsigned depth, bool centred) {
  return {cubes_of(sites.expected, origin, depth, centred), cubes_of(sites.known, origin, depth, centred)};
}

std::uint32_t prediction_check(Prediction prediction, bool weighed) {
  Vector<std::uint8_t> bytes((weighed ? 25 : 24) * prediction.size());
  std::uint8_t* out = bytes.data();
  for (const PredictedPoint& point : prediction) {
    for (const std::int64_t at : point.at) {
      kernels::store_le<std::uint64_t>(out, static_cast<std::uint64_t>(at));
      out += 8;
    }
    if (weighed) *out++ = point.weight;
  }
  return static_cast<std::uint32_t>(checksum64(bytes));
}

}  // namespace quern::codec::lidar

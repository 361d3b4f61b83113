// Lattice sites near a point, and the lattice for a bound. Coordinates are fine ones from the origin of a region, not
// negative, and sites are packed into 63 bits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "codecs/lidar/geometry/fine_points.h"
#include "codecs/lidar/octree/block.h"
#include "codecs/lidar/octree/morton.h"
#include "codecs/lidar/octree/sensor_view.h"

namespace quern::codec::lidar {

/// The coarsest lattice of whole units that has a site within `reach` fine units of every point; none where even single
/// units are too coarse. A centred lattice of spacing s covers within s sqrt(5) / 2, a cubic one within s sqrt(3) / 2.
inline std::optional<Lattice> lattice_for(std::int64_t reach) {
  if (reach < 1) return std::nullopt;
  const std::uint64_t four_squares = 4 * static_cast<std::uint64_t>(reach) * static_cast<std::uint64_t>(reach);
  if (const std::uint64_t spacing = integer_root(four_squares / 5) >> kFineBits; spacing > 0)
    return Lattice{static_cast<std::int64_t>(spacing), true};
  if (const std::uint64_t spacing = integer_root(four_squares / 3) >> kFineBits; spacing > 0)
    return Lattice{static_cast<std::int64_t>(spacing), false};
  return std::nullopt;
}

inline constexpr unsigned kSiteBits = kMostDepth;

constexpr std::uint64_t pack_site(std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  return x << (2 * kSiteBits) | y << kSiteBits | z;
}
constexpr std::array<std::uint64_t, 3> unpack_site(std::uint64_t site) {
  constexpr std::uint64_t kMask = (UINT64_C(1) << kSiteBits) - 1;
  return {site >> (2 * kSiteBits), site >> kSiteBits & kMask, site & kMask};
}
/// Sorts sites as blocks hold them: by the Morton key of the cube, then even before odd.
constexpr std::uint64_t block_order(std::uint64_t site, bool centred) {
  const auto [x, y, z] = unpack_site(site);
  if (!centred) return morton(x, y, z);
  return morton(x >> 1, y >> 1, z >> 1) << 1 | (x & 1);
}

/// The lattice as its users walk it: one or two cubic lattices, the second shifted by half a step in each axis.
class SiteFinder {
 public:
  SiteFinder(const Lattice& lattice, std::int64_t reach)
      : spacing_(lattice.spacing * kFine),
        step_(lattice.centred ? 2 * spacing_ : spacing_),
        classes_(lattice.centred ? 2 : 1),
        reach_(reach) {}

  /// Calls visit(site, squared distance) for every site within reach. `point` is at least one step from the region's
  /// origin in each axis.
  template <class Visit>
  void each_within(const FinePoint& point, const Visit& visit) const {
    for (unsigned parity = 0; parity < classes_; ++parity) {
      std::array<Axis, 3> axes;
      for (unsigned axis = 0; axis < 3; ++axis) axes[axis] = near_on_axis(point[axis], parity);
      for (unsigned i = 0; i < 8; ++i) {
        const Axis::Choice& x = axes[0].choices[i >> 2];
        const Axis::Choice& y = axes[1].choices[i >> 1 & 1];
        const Axis::Choice& z = axes[2].choices[i & 1];
        const std::int64_t distance = x.square + y.square + z.square;
        if (distance <= reach_ * reach_) visit(pack_site(x.at, y.at, z.at), distance);
      }
    }
  }

  /// The nearest site, the first of equals.
  std::uint64_t nearest(const FinePoint& point) const {
    std::uint64_t best = 0;
    std::int64_t least = INT64_MAX;
    for (unsigned parity = 0; parity < classes_; ++parity) {
      std::int64_t distance = 0;
      std::array<std::uint64_t, 3> at{};
      for (unsigned axis = 0; axis < 3; ++axis) {
        const Axis near = near_on_axis(point[axis], parity);
        const Axis::Choice& choice = near.choices[near.choices[1].square < near.choices[0].square ? 1 : 0];
        distance += choice.square;
        at[axis] = choice.at;
      }
      if (distance >= least) continue;
      least = distance;
      best = pack_site(at[0], at[1], at[2]);
    }
    return best;
  }

 private:
  struct Axis {
    struct Choice {
      std::uint64_t at = 0;     ///< in spacings
      std::int64_t square = 0;  ///< of the distance
    };
    std::array<Choice, 2> choices;  ///< the site below and the site above
  };

  Axis near_on_axis(std::int64_t at, unsigned parity) const {
    const std::int64_t from = at - (parity != 0 ? spacing_ : 0);
    const std::int64_t below = from / step_;
    const std::int64_t rest = from - below * step_;
    const std::uint64_t scale = classes_;
    const std::uint64_t site = static_cast<std::uint64_t>(below) * scale + parity;
    return {{{{site, rest * rest}, {site + scale, (step_ - rest) * (step_ - rest)}}}};
  }

  std::int64_t spacing_;
  std::int64_t step_;
  unsigned classes_;
  std::int64_t reach_;
};

}  // namespace quern::codec::lidar

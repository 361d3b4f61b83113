// How the sensor sees an octree's cubes: distance, height and elevation of their centres, in integers. Contexts only;
// clouds of no sensor lose nothing but a little of their ratio.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "codecs/lidar/octree/block.h"
#include "codecs/lidar/octree/morton.h"
#include "kernels/common/bits.h"
#include "kernels/common/integer_root.h"

namespace quern::codec::lidar {

using kernels::integer_root;

class SensorView {
 public:
  SensorView(const Surroundings& surroundings, const Block& block, unsigned level)
      : shift_(block.depth - 1 - level + (surroundings.lattice.centred ? 1U : 0U)),
        spacing_(surroundings.lattice.spacing),
        per_metre_(surroundings.units_per_metre),
        origin_(block.origin) {}

  /// Moves to a node of the level.
  void look_at(std::uint64_t key) {
    x_ = morton_x(key);
    y_ = morton_y(key);
    z_ = morton_z(key);
    for (unsigned i = 0; i < 4; ++i) {
      const std::int64_t x = centre(2 * std::uint64_t{x_} + (i >> 1), origin_[0]);
      const std::int64_t y = centre(2 * std::uint64_t{y_} + (i & 1), origin_[1]);
      const std::uint64_t root = integer_root(static_cast<std::uint64_t>(x * x + y * y));
      inverse_[i] = static_cast<std::int64_t>((UINT64_C(1) << 32) / (root + 1));
      if (i == 0) distance_ = root;
    }
    // Distances in doubled lattice steps: in quarter metres and in children's sides, both by half octaves.
    band_ = half_octaves(distance_ * static_cast<std::uint64_t>(spacing_) * 2 / per_metre_);
    relative_ = half_octaves(distance_ >> (shift_ + 1));
    const std::int64_t z = centre(2 * std::uint64_t{z_} + 1, origin_[2]);
    const std::int64_t quarters = z * spacing_ * 2 / static_cast<std::int64_t>(per_metre_) + 40;
    height_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(quarters, 0, 63));
  }

  /// Half octaves of the distance in metres, and in sides of a child; below 16.
  unsigned band() const { return band_; }
  unsigned relative_distance() const { return relative_; }
  /// Tangent of the elevation of a child's centre, in units of 1/600.
  std::int32_t elevation(unsigned child) const {
    const std::int64_t z = centre(2 * std::uint64_t{z_} + (child & 1), origin_[2]);
    const std::int64_t scaled = std::clamp<std::int64_t>(z * 600, -(1 << 30), 1 << 30);
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(scaled * inverse_[child >> 1] >> 32, -(1 << 20), 1 << 20));
  }
  /// Lowest 16 bits of the z coordinate of a child within its level.
  std::uint32_t layer(unsigned child) const { return (2 * z_ + (child & 1)) & 0xFFFF; }
  /// Height of the node in steps of a quarter metre from 10 m below the sensor, within [0, 63].
  std::uint32_t height() const { return height_; }

 private:
  static unsigned half_octaves(std::uint64_t n) {
    const std::uint64_t bounded = std::min<std::uint64_t>(n + 1, 65535);
    return std::min(15U, kernels::bit_length(bounded * bounded) - 1);
  }
  /// Twice the lattice coordinate of a child's centre, from the sensor, within +-2^28.
  std::int64_t centre(std::uint64_t at, std::int64_t origin) const {
    const std::int64_t doubled = 2 * origin + static_cast<std::int64_t>((2 * at + 1) << shift_);
    return std::clamp<std::int64_t>(doubled, -(INT64_C(1) << 28), INT64_C(1) << 28);
  }

  unsigned shift_;
  std::int64_t spacing_;
  std::uint64_t per_metre_;
  std::array<std::int64_t, 3> origin_;
  std::uint32_t x_ = 0;
  std::uint32_t y_ = 0;
  std::uint32_t z_ = 0;
  std::uint64_t distance_ = 0;
  unsigned band_ = 0;
  unsigned relative_ = 0;
  std::uint32_t height_ = 0;
  std::array<std::int64_t, 4> inverse_{};
};

}  // namespace quern::codec::lidar

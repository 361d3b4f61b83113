// One description of how a block's octree is coded, for encoder and decoder: level by level, the nodes of a level in
// Morton order, the occupancy of each; then the sites of each cube; then, where asked for, the points at each site.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/lidar/coding/bit_coder.h"
#include "codecs/lidar/coding/number_coder.h"
#include "codecs/lidar/octree/block.h"
#include "codecs/lidar/octree/tree_model.h"

namespace quern::codec::lidar {

/// What a decoder is told of a block beforehand. Counts are limits: a stream that goes beyond is corrupt.
struct BlockLimits {
  std::uint64_t cubes = 0;
  std::uint64_t points = 0;  ///< sum of counts
  bool counted = false;
};

/// `kExpects`: with a prediction.
template <class Coder, bool kExpects>
class TreeCoder {
 public:
  using BlockOf = std::conditional_t<Coder::kDecodes, Block, const Block>;

  /// An encoder's block is complete; a decoder's has origin and depth, and receives the rest.
  TreeCoder(Coder& coder, const Surroundings& surroundings, const BlockLimits& limits, const ExpectedCubes& expected,
            BlockOf& block)
      : coder_(coder),
        surroundings_(surroundings),
        limits_(limits),
        expected_cubes_(expected),
        block_(block),
        occupancy_model_(limits.cubes),
        half_model_(limits.cubes) {}

  /// Fails with `corrupt` where a decoder's bytes break a limit or end early. May throw std::bad_alloc.
  Status run() {
    level_.keys.assign(1, 0);
    level_.near.assign(1, lone_node());
    if constexpr (kExpects) {
      expected_.keys.assign(1, 0);
      level_.near_expected.assign(1, lone_node());
    }
    for (unsigned depth = 0; depth < block_.depth; ++depth) {
      QUERN_RETURN_IF_ERROR(code_level(depth));
      QUERN_RETURN_IF_ERROR(descend());
    }
    if constexpr (Coder::kDecodes) block_.cubes.assign(level_.keys.begin(), level_.keys.end());
    QUERN_RETURN_IF_ERROR(code_halves());
    return limits_.counted ? code_counts() : Status();
  }

 private:
  struct Level {
    Vector<std::uint64_t> keys;
    Vector<std::uint8_t> occupancy;
    Vector<std::uint32_t> first_child;
    Vector<Neighbours> near;
    Vector<Neighbours> near_expected;  ///< among the expected nodes of the level
  };

  static Neighbours lone_node() {
    Neighbours near;
    near.fill(-1);
    near[kOwnSlot] = 0;
    return near;
  }
  Status corrupt() const { return Status(StatusCode::corrupt, "an octree's bytes are not what an encoder writes"); }

  /// Occupancy of a node from the cubes below it, which begin at `at`.
  unsigned occupancy_of(const Vector<std::uint64_t>& cubes, std::uint64_t key, unsigned depth, std::size_t& at) const {
    const unsigned shift = 3 * (block_.depth - 1 - depth);
    unsigned occupancy = 0;
    for (; at < cubes.size() && cubes[at] >> shift >> 3 == key; ++at) occupancy |= 1U << (cubes[at] >> shift & 7);
    return occupancy;
  }

  NodeSites sites_of(std::size_t node) const {
    const Neighbours& near = level_.near[node];
    NodeSites sites;
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      const std::int32_t other = near[slot];
      if (other < 0 || slot == kOwnSlot) continue;
      ++sites.nodes;
      if (static_cast<std::size_t>(other) < node) {
        sites.full |= kSites[slot][level_.occupancy[static_cast<std::size_t>(other)]];
      } else {
        sites.possible |= kSites[slot][255];
      }
    }
    sites.faces = faces_of(near);
    if constexpr (kExpects) {
      for (unsigned slot = 0; slot < kSlots; ++slot)
        if (const std::int32_t other = level_.near_expected[node][slot]; other >= 0)
          sites.expected |= kSites[slot][expected_.occupancy[static_cast<std::size_t>(other)]];
    }
    return sites;
  }
  static unsigned faces_of(const Neighbours& near) {
    unsigned faces = 0;
    for (unsigned i = 0; i < kFaceSlots.size(); ++i) faces |= (near[kFaceSlots[i]] >= 0 ? 1U : 0U) << i;
    return faces;
  }

  Status code_level(unsigned depth) {
    const std::size_t nodes = level_.keys.size();
    level_.occupancy.assign(nodes, 0);
    if constexpr (kExpects) expect_level(depth);
    SensorView view(surroundings_, block_, depth);
    occupancy_model_.enter_level(depth, block_.depth - 1 - depth);
    std::size_t at = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
      unsigned occupancy = 0;
      if constexpr (!Coder::kDecodes) occupancy = occupancy_of(block_.cubes, level_.keys[node], depth, at);
      view.look_at(level_.keys[node]);
      occupancy = occupancy_model_.code(coder_, sites_of(node), view, occupancy);
      level_.occupancy[node] = static_cast<std::uint8_t>(occupancy);
      if (Coder::kDecodes && !coder_.good()) return corrupt();
    }
    return {};
  }

  /// Occupancies of the expected nodes of a level.
  void expect_level(unsigned depth) {
    std::size_t at = 0;
    expected_.occupancy.resize(expected_.keys.size());
    for (std::size_t node = 0; node < expected_.keys.size(); ++node)
      expected_.occupancy[node] =
          static_cast<std::uint8_t>(occupancy_of(expected_cubes_.cubes, expected_.keys[node], depth, at));
  }

  /// Places of the first children of a level's nodes; returns how many children there are.
  static std::uint64_t number_children(Level& level) {
    const std::size_t nodes = level.keys.size();
    level.first_child.resize(nodes);
    std::uint64_t children = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
      level.first_child[node] = static_cast<std::uint32_t>(children);
      children += count_sites(level.occupancy[node]);
    }
    return children;
  }

  void descend_expected() {
    Vector<std::uint64_t> keys;
    keys.reserve(number_children(expected_));
    for (std::size_t node = 0; node < expected_.keys.size(); ++node)
      for (unsigned child = 0; child < 8; ++child)
        if ((expected_.occupancy[node] >> child & 1) != 0) keys.push_back(expected_.keys[node] << 3 | child);
    expected_.keys = std::move(keys);
  }

  /// Makes the next level: keys of the children and their neighbours.
  Status descend() {
    const std::size_t nodes = level_.keys.size();
    const std::uint64_t children = number_children(level_);
    if (children > limits_.cubes) return corrupt();
    next_.keys.resize(children);
    next_.near.resize(children);
    if constexpr (kExpects) {
      next_.near_expected.resize(children);
      number_children(expected_);
    }
    std::size_t made = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
      for (unsigned child = 0; child < 8; ++child) {
        if ((level_.occupancy[node] >> child & 1) == 0) continue;
        next_.keys[made] = level_.keys[node] << 3 | child;
        find_neighbours(level_, level_.near[node], child, next_.near[made]);
        if constexpr (kExpects)
          find_neighbours(expected_, level_.near_expected[node], child, next_.near_expected[made]);
        ++made;
      }
    }
    std::swap(level_, next_);
    if constexpr (kExpects) descend_expected();
    return {};
  }

  static void find_neighbours(const Level& level, const Neighbours& parents, unsigned child, Neighbours& near) {
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      const ChildNeighbour where = kChildNeighbours[child][slot];
      const std::int32_t parent = parents[where.slot];
      near[slot] = -1;
      if (parent < 0) continue;
      const std::uint32_t occupancy = level.occupancy[static_cast<std::size_t>(parent)];
      if ((occupancy >> where.child & 1) == 0) continue;
      const std::uint32_t before = count_sites(occupancy & ((1U << where.child) - 1));
      near[slot] = static_cast<std::int32_t>(level.first_child[static_cast<std::size_t>(parent)] + before);
    }
  }

  HalfSites half_sites(std::size_t cube) const {
    const Neighbours& near = level_.near[cube];
    HalfSites sites;
    sites.faces = faces_of(near);
    for (unsigned corner = 1; corner < 8; ++corner) {
      const unsigned step = 9 * (corner >> 2 & 1) + 3 * (corner >> 1 & 1) + (corner & 1);
      if (const int halves = coded_halves(near[kOwnSlot - step], cube); halves > 0)
        sites.odd_around |= static_cast<unsigned>(halves >> 1) << corner;
      const std::int32_t behind = near[kOwnSlot + step];
      if (const int halves = coded_halves(behind, cube); halves > 0) {
        sites.even_around |= static_cast<unsigned>(halves & 1) << corner;
      } else if (behind >= 0) {
        sites.cubes_behind |= 1U << corner;
      }
    }
    for (unsigned axis = 0; axis < 3; ++axis)
      sites.face_halves |= static_cast<unsigned>(std::max(coded_halves(near[kFaceSlots[2 * axis]], cube), 0))
                           << (2 * axis);
    if constexpr (kExpects) expect_halves(level_.near_expected[cube], sites);
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      if (near[slot] < 0 || slot == kOwnSlot) continue;
      ++sites.cubes;
      const int halves = coded_halves(near[slot], cube);
      if (halves <= 0) continue;
      sites.evens += static_cast<unsigned>(halves & 1);
      sites.odds += static_cast<unsigned>(halves >> 1);
    }
    return sites;
  }
  void expect_halves(const Neighbours& near, HalfSites& sites) const {
    const auto halves = [&](std::int32_t other) {
      return other < 0 ? 0U : unsigned{expected_cubes_.halves[static_cast<std::size_t>(other)]};
    };
    sites.expected = halves(near[kOwnSlot]);
    for (unsigned corner = 1; corner < 8; ++corner) {
      const unsigned step = 9 * (corner >> 2 & 1) + 3 * (corner >> 1 & 1) + (corner & 1);
      sites.expected_odds += halves(near[kOwnSlot - step]) >> 1;
      sites.expected_evens += halves(near[kOwnSlot + step]) & 1;
    }
    for (unsigned i = 0; i < kFaceSlots.size(); ++i) sites.expected_faces |= halves(near[kFaceSlots[i]]) << (2 * i);
  }
  /// -1 where there is no cube or it is not coded yet.
  int coded_halves(std::int32_t other, std::size_t cube) const {
    if (other < 0 || static_cast<std::size_t>(other) >= cube) return -1;
    return block_.halves[static_cast<std::size_t>(other)];
  }

  Status code_halves() {
    const std::size_t cubes = block_.cubes.size();
    if constexpr (Coder::kDecodes) block_.halves.assign(cubes, 1);
    if (!surroundings_.lattice.centred) return {};
    for (std::size_t cube = 0; cube < cubes; ++cube) {
      const std::uint32_t layer = morton_z(block_.cubes[cube]);
      const unsigned halves = half_model_.code(coder_, half_sites(cube), layer, block_.halves[cube]);
      if constexpr (Coder::kDecodes) {
        block_.halves[cube] = static_cast<std::uint8_t>(halves);
        if (!coder_.good()) return corrupt();
      }
    }
    return {};
  }

  Status code_counts() {
    std::uint64_t points = 0;
    std::size_t site = 0;
    for (std::size_t cube = 0; cube < block_.cubes.size(); ++cube) {
      unsigned around = 0;
      for (const std::int32_t other : level_.near[cube]) around += other >= 0 ? 1 : 0;
      for (unsigned half = 0; half < 2; ++half) {
        if ((block_.halves[cube] >> half & 1) == 0) continue;
        std::uint64_t more = 0;
        if constexpr (!Coder::kDecodes) more = block_.counts[site] - 1;
        more = count_models_[std::min(around / 4, 3U)].code(coder_, more);
        points += more + 1;
        if (more > limits_.points || points > limits_.points || !coder_.good()) return corrupt();
        if constexpr (Coder::kDecodes) block_.counts.push_back(static_cast<std::uint32_t>(more + 1));
        ++site;
      }
    }
    return {};
  }

  Coder& coder_;
  const Surroundings& surroundings_;
  const BlockLimits& limits_;
  const ExpectedCubes& expected_cubes_;
  BlockOf& block_;
  Level level_;
  Level next_;
  Level expected_;  ///< the expected nodes of the level
  OccupancyModel<kExpects> occupancy_model_;
  HalfModel<kExpects> half_model_;
  std::array<NumberModel, 4> count_models_;
};

}  // namespace quern::codec::lidar

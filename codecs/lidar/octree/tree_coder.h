// One description of how a block's octree is coded, for encoder and decoder: level by level, the nodes of a level in
// Morton order, the occupancy of each; then the sites of each cube; then, where asked for, the points at each site.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
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

template <class Coder, Expectation kExpects>
class TreeCoder {
 public:
  using BlockOf = std::conditional_t<Coder::kDecodes, Block, const Block>;

  /// An encoder's block is complete; a decoder's has origin and depth, and receives the rest.
  TreeCoder(Coder& coder, const Surroundings& surroundings, const BlockLimits& limits,
            const BlockPrediction& prediction, BlockOf& block)
      : coder_(coder),
        surroundings_(surroundings),
        limits_(limits),
        expected_cubes_(prediction.expected),
        known_(prediction.known),
        block_(block),
        occupancy_model_(limits.cubes),
        half_model_(limits.cubes) {}

  /// Fails with `corrupt` where a decoder's bytes break a limit or end early. May throw std::bad_alloc.
  Status run() {
    level_.keys.assign(1, 0);
    level_.near.assign(1, Neighbours{});
    level_.windows.assign(1, kWindowMiddle);
    if constexpr (kExpects != Expectation::none) {
      expected_.keys.assign(1, 0);
      level_.near_expected.assign(1, Neighbours{});
      level_.expected_windows.assign(1, kWindowMiddle);
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
    Vector<std::uint64_t> windows;     ///< which neighbours there are, by their sites around the node
    Vector<Neighbours> near_expected;  ///< among the expected nodes of the level
    Vector<std::uint64_t> expected_windows;
  };

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
    const std::uint64_t window = level_.windows[node];
    NodeSites sites;
    sites.nodes = count_sites(window & kWindow);
    sites.faces = faces_of(window);
    each_site(window & kWindow, [&](unsigned site) {
      const auto other = static_cast<std::size_t>(near[kNeighbourhood.slots[site]]);
      // A node that is not coded yet has no children so far.
      sites.full |= sites_of_children(site, level_.occupancy[other]);
      if (other > node) sites.possible |= kNeighbourhood.sites[site];
    });
    if constexpr (kExpects != Expectation::none) {
      each_site(level_.expected_windows[node], [&](unsigned site) {
        const auto other = static_cast<std::size_t>(level_.near_expected[node][kNeighbourhood.slots[site]]);
        sites.expected |= sites_of_children(site, expected_.occupancy[other]);
        if (has_weights(kExpects) && site == kMiddleSite) sites.weights = child_weights_[other];
      });
    }
    return sites;
  }
  static unsigned faces_of(std::uint64_t window) {
    unsigned faces = 0;
    for (unsigned i = 0; i < kFaceSites.size(); ++i) faces |= static_cast<unsigned>(window >> kFaceSites[i] & 1) << i;
    return faces;
  }
  /// Calls visit(site) for each site of a set.
  template <class Visit>
  static void each_site(std::uint64_t sites, const Visit& visit) {
    for (; sites != 0; sites &= sites - 1) visit(static_cast<unsigned>(std::countr_zero(sites)));
  }

  Status code_level(unsigned depth) {
    const std::size_t nodes = level_.keys.size();
    level_.occupancy.assign(nodes, 0);
    if constexpr (kExpects != Expectation::none) expect_level(depth);
    SensorView view(surroundings_, block_, depth);
    occupancy_model_.enter_level(depth, block_.depth - 1 - depth);
    std::size_t at = 0;
    std::size_t known_at = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
      unsigned occupancy = 0;
      if constexpr (!Coder::kDecodes) occupancy = occupancy_of(block_.cubes, level_.keys[node], depth, at);
      view.look_at(level_.keys[node]);
      NodeSites sites = sites_of(node);
      if constexpr (kExpects == Expectation::known) sites.known = known_in(level_.keys[node], depth, known_at);
      occupancy = occupancy_model_.code(coder_, sites, view, occupancy);
      level_.occupancy[node] = static_cast<std::uint8_t>(occupancy);
      if (Coder::kDecodes && !coder_.good()) return corrupt();
    }
    return {};
  }

  /// Points known in each child of a node. The known cubes are walked through once a level: `at` is where the walk is.
  ChildWeights known_in(std::uint64_t key, unsigned depth, std::size_t& at) const {
    const unsigned shift = 3 * (block_.depth - 1 - depth);
    ChildWeights known{};
    while (at < known_.cubes.size() && known_.cubes[at] >> shift >> 3 < key) ++at;
    for (; at < known_.cubes.size() && known_.cubes[at] >> shift >> 3 == key; ++at)
      for (const std::uint32_t count : known_.weights[at]) known[known_.cubes[at] >> shift & 7] += count;
    return known;
  }

  /// Occupancies of the expected nodes of a level.
  void expect_level(unsigned depth) {
    std::size_t at = 0;
    expected_.occupancy.resize(expected_.keys.size());
    if constexpr (has_weights(kExpects)) child_weights_.assign(expected_.keys.size(), ChildWeights{});
    const unsigned shift = 3 * (block_.depth - 1 - depth);
    for (std::size_t node = 0; node < expected_.keys.size(); ++node) {
      std::size_t cube = at;
      expected_.occupancy[node] =
          static_cast<std::uint8_t>(occupancy_of(expected_cubes_.cubes, expected_.keys[node], depth, at));
      if constexpr (has_weights(kExpects))
        for (; cube < at; ++cube)
          for (const std::uint32_t weight : expected_cubes_.weights[cube])
            child_weights_[node][expected_cubes_.cubes[cube] >> shift & 7] += weight;
    }
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
    next_.windows.resize(children);
    if constexpr (kExpects != Expectation::none) {
      next_.near_expected.resize(children);
      next_.expected_windows.resize(children);
      number_children(expected_);
    }
    std::size_t made = 0;
    ChildTable table{};
    ChildTable expected_table{};
    for (std::size_t node = 0; node < nodes; ++node) {
      const std::uint64_t sites = list_children(level_, level_.near[node], level_.windows[node], table);
      std::uint64_t expected_sites = 0;
      if constexpr (kExpects != Expectation::none)
        expected_sites =
            list_children(expected_, level_.near_expected[node], level_.expected_windows[node], expected_table);
      for (unsigned child = 0; child < 8; ++child) {
        if ((level_.occupancy[node] >> child & 1) == 0) continue;
        next_.keys[made] = level_.keys[node] << 3 | child;
        next_.windows[made] = sites >> window_at(child) & kWholeWindow;
        copy_window(table, child, next_.near[made]);
        if constexpr (kExpects != Expectation::none) {
          next_.expected_windows[made] = expected_sites >> window_at(child) & kWholeWindow;
          copy_window(expected_table, child, next_.near_expected[made]);
        }
        ++made;
      }
    }
    std::swap(level_, next_);
    if constexpr (kExpects != Expectation::none) descend_expected();
    return {};
  }

  /// Indices of the children in and around a node, by site; those of sites that none takes are of no meaning. The last
  /// takes what lies outside.
  using ChildTable = std::array<std::int32_t, kNoSite + 1>;

  /// Returns which sites children take.
  static std::uint64_t list_children(const Level& level, const Neighbours& near, std::uint64_t window,
                                     ChildTable& table) {
    std::uint64_t taken = 0;
    each_site(window, [&](unsigned site) {
      const auto parent = static_cast<std::size_t>(near[kNeighbourhood.slots[site]]);
      const unsigned occupancy = level.occupancy[parent];
      taken |= sites_of_children(site, occupancy);
      auto index = static_cast<std::int32_t>(level.first_child[parent]);
      for (unsigned left = occupancy; left != 0; left &= left - 1)
        table[kNeighbourhood.child_sites[site][static_cast<unsigned>(std::countr_zero(left))]] = index++;
    });
    return taken;
  }
  static void copy_window(const ChildTable& table, unsigned child, Neighbours& near) {
    const std::int32_t* const from = table.data() + window_at(child);
    for (unsigned row = 0; row < 9; ++row)
      for (unsigned z = 0; z < 3; ++z) near[3 * row + z] = from[16 * (row / 3) + 4 * (row % 3) + z];
  }

  HalfSites half_sites(std::size_t cube) const {
    const Neighbours& near = level_.near[cube];
    const std::uint64_t window = level_.windows[cube];
    // Of the cubes that are coded.
    std::uint64_t evens = 0;
    std::uint64_t odds = 0;
    each_site(window & kWindow, [&](unsigned site) {
      const auto other = static_cast<std::size_t>(near[kNeighbourhood.slots[site]]);
      const std::uint64_t halves = other < cube ? block_.halves[other] : 0;
      evens |= (halves & 1) << site;
      odds |= halves >> 1 << site;
    });
    HalfSites sites;
    sites.faces = faces_of(window);
    sites.odd_around = reversed(corner_sites(odds));
    sites.even_around = corner_sites(evens >> kMiddleSite);
    sites.cubes_behind = corner_sites((window & kWindow & ~(evens | odds)) >> kMiddleSite);
    for (unsigned axis = 0; axis < 3; ++axis)
      sites.face_halves |= halves_at(kFaceSites[2 * axis], evens, odds) << (2 * axis);
    sites.cubes = count_sites(window & kWindow);
    sites.evens = count_sites(evens);
    sites.odds = count_sites(odds);
    if constexpr (kExpects != Expectation::none)
      expect_halves(level_.near_expected[cube], level_.expected_windows[cube], sites);
    return sites;
  }
  void expect_halves(const Neighbours& near, std::uint64_t window, HalfSites& sites) const {
    std::uint64_t evens = 0;
    std::uint64_t odds = 0;
    each_site(window, [&](unsigned site) {
      const std::uint64_t halves = expected_cubes_.halves[static_cast<std::size_t>(near[kNeighbourhood.slots[site]])];
      evens |= (halves & 1) << site;
      odds |= halves >> 1 << site;
    });
    sites.expected = halves_at(kMiddleSite, evens, odds);
    if (has_weights(kExpects) && sites.expected != 0)
      sites.weights = expected_cubes_.weights[static_cast<std::size_t>(near[kOwnSlot])];
    sites.expected_odds = count_sites(corner_sites(odds & kWindow));
    sites.expected_evens = count_sites(corner_sites((evens & kWindow) >> kMiddleSite));
    for (unsigned i = 0; i < kFaceSites.size(); ++i)
      sites.expected_faces |= halves_at(kFaceSites[i], evens, odds) << (2 * i);
  }
  static unsigned halves_at(unsigned site, std::uint64_t evens, std::uint64_t odds) {
    return static_cast<unsigned>((evens >> site & 1) | (odds >> site & 1) << 1);
  }

  Status code_halves() {
    const std::size_t cubes = block_.cubes.size();
    if constexpr (Coder::kDecodes) block_.halves.assign(cubes, 1);
    if (!surroundings_.lattice.centred) return {};
    std::size_t known_at = 0;
    for (std::size_t cube = 0; cube < cubes; ++cube) {
      const std::uint32_t layer = morton_z(block_.cubes[cube]);
      HalfSites sites = half_sites(cube);
      if constexpr (kExpects == Expectation::known) {
        while (known_at < known_.cubes.size() && known_.cubes[known_at] < block_.cubes[cube]) ++known_at;
        if (known_at < known_.cubes.size() && known_.cubes[known_at] == block_.cubes[cube])
          sites.known = known_.weights[known_at];
      }
      const unsigned halves = half_model_.code(coder_, sites, layer, block_.halves[cube]);
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
      const unsigned around = count_sites(level_.windows[cube]);
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
  const ExpectedCubes& known_;
  BlockOf& block_;
  Level level_;
  Level next_;
  Level expected_;  ///< the expected nodes of the level
  Vector<ChildWeights> child_weights_;
  OccupancyModel<kExpects> occupancy_model_;
  HalfModel<kExpects> half_model_;
  std::array<NumberModel, 4> count_models_;
};

}  // namespace quern::codec::lidar

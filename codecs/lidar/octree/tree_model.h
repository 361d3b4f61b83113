// What an octree's decisions are predicted from. A child is seen with the 26 sites around it: those already coded are
// known to be full or empty; of the others one knows whether their parent exists. Published octree coders look at the
// same neighbours (MPEG G-PCC, ISO/IEC 23090-9); here several such views are mixed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "codecs/lidar/coding/context_mixer.h"
#include "codecs/lidar/octree/block.h"
#include "codecs/lidar/octree/neighbourhood.h"
#include "codecs/lidar/octree/sensor_view.h"
#include "kernels/common/bits.h"

namespace quern::codec::lidar {

using ChildWeights = std::array<std::uint32_t, 8>;

/// The sites in and around a node.
struct NodeSites {
  std::uint64_t full = 0;      ///< coded ones that are full
  std::uint64_t possible = 0;  ///< not coded yet, of a parent that exists
  unsigned faces = 0;          ///< which of the six nodes that share a face exist
  unsigned nodes = 0;          ///< how many of the 26 nodes around exist
  std::uint64_t expected = 0;  ///< by the prediction
  ChildWeights weights{};      ///< of the points that are expected in each child
  ChildWeights known{};        ///< points that are known in each child, seen or not
};

/// What the decisions of a node share of a prediction, in classes.
struct NodeClasses {
  std::uint64_t occupancy = 0;              ///< expected children
  std::array<std::uint8_t, 8> level{};      ///< bits of the weight of each child
  std::uint64_t all = 0;                    ///< such levels up to 3, two bits each
  std::array<std::uint8_t, 8> own_known{};  ///< bits of the number of points known in each child
  std::uint64_t each_known = 0;             ///< half of them, up to 3, two bits each
  std::uint64_t all_level = 0;              ///< bits of the number of points known in all
};

template <Expectation kExpects>
class OccupancyModel {
 public:
  explicit OccupancyModel(std::uint64_t cubes) : mixer_(table_bits_for(cubes), kFirstSets, kSecondSets) {}

  /// `levels_below`: of the children, 0 where they are cubes.
  void enter_level(unsigned level, unsigned levels_below) {
    level_ = level;
    group_ = std::min(levels_below, 5U);
  }

  /// Codes which children of a node exist; for an encoder `occupancy` says it. A node has at least one.
  template <class Coder>
  unsigned code(Coder& coder, const NodeSites& sites, const SensorView& view, unsigned occupancy = 0) {
    NodeSites seen = sites;
    const NodeClasses classes = classes_of(sites);
    unsigned path = 1;
    unsigned result = 0;
    for (unsigned child = 0; child < 8; ++child) {
      unsigned bit = 1;
      if (child < 7 || result != 0)
        bit = mixer_.code(coder, context(seen, classes, view, child, path, result), occupancy >> child & 1);
      path = path << 1 | bit;
      result |= bit << child;
      seen.full |= std::uint64_t{bit} << own_site(child);
    }
    return result;
  }

 private:
  static constexpr unsigned kContexts = kExpects == Expectation::none      ? 8
                                        : kExpects == Expectation::marked  ? 12
                                        : kExpects == Expectation::weighed ? 16
                                                                           : 24;
  static constexpr std::uint32_t kFirstSets = 6 * 8 * 8;
  static constexpr std::uint32_t kSecondSets = kExpects == Expectation::none ? 14 * 4 * 16 : 32 * 4 * 16;

  static NodeClasses classes_of(const NodeSites& sites) {
    NodeClasses classes;
    if constexpr (kExpects != Expectation::none) classes.occupancy = corner_sites(sites.expected >> kMiddleSite);
    if constexpr (has_weights(kExpects))
      for (unsigned child = 0; child < 8; ++child) {
        const unsigned level = std::min(kernels::bit_length(sites.weights[child]), 7U);
        classes.level[child] = static_cast<std::uint8_t>(level);
        classes.all = classes.all << 2 | std::min(level, 3U);
      }
    if constexpr (kExpects == Expectation::known) {
      std::uint64_t known = 0;
      for (unsigned child = 0; child < 8; ++child) {
        const unsigned level = std::min(kernels::bit_length(sites.known[child]), 15U);
        classes.own_known[child] = static_cast<std::uint8_t>(level);
        classes.each_known = classes.each_known << 2 | std::min((level + 1) / 2, 3U);
        known += sites.known[child];
      }
      classes.all_level = std::min(kernels::bit_length(known), 15U);
    }
    return classes;
  }

  DecisionContext<kContexts> context(const NodeSites& seen, const NodeClasses& classes, const SensorView& view,
                                     unsigned child, unsigned path, unsigned result) const {
    const std::uint64_t full = seen.full >> window_at(child) & kWindow;
    const std::uint64_t possible = seen.possible >> window_at(child) & kWindow;
    const unsigned known = weight_sites(full);
    const unsigned unknown = weight_sites(possible);
    const unsigned ones = std::min(count_sites(result), 3U);
    const std::uint64_t here = child | std::uint64_t{group_} << 3;
    const std::uint64_t fine = std::min(group_, 3U);
    const unsigned distance = view.relative_distance();
    const std::uint64_t known_class = known > 2 ? 2 : known > 0 ? 1 : 0;
    const std::array<std::uint32_t, 8> own = {
        context_hash(path | seen.faces << 8 | fine << 14 | std::uint64_t{seen.nodes > 12} << 16, 1),
        context_hash(full & (kWindowFaces | kWindowEdges), (possible & kWindowFaces) * 8 + child),
        context_hash(here | std::uint64_t{std::min(known, 15U)} << 6 | std::uint64_t{std::min(unknown, 15U)} << 10 |
                         std::uint64_t{ones} << 14,
                     2),
        context_hash(view.layer(child) | std::uint64_t{level_} << 16, view.band()),
        context_hash(static_cast<std::uint64_t>(static_cast<std::int64_t>(view.elevation(child))),
                     distance | known_class << 4 | std::uint64_t{ones > 0} << 6 | 128),
        context_hash(full, (possible & kWindowFaces) * 8 + child + (UINT64_C(1) << 60)),
        context_hash((full | possible) & (kWindowFaces | kWindowEdges), child | fine << 3 | UINT64_C(1) << 32),
        context_hash(
            path | std::uint64_t{group_} << 8 | std::uint64_t{view.height()} << 12 | std::uint64_t{view.band()} << 20,
            3),
    };
    DecisionContext<kContexts> seen_as;
    std::copy(own.begin(), own.end(), seen_as.contexts.begin());
    seen_as.first_set = (group_ * 8 + child) * 8 + std::min((known + 1) / 2, 7U);
    seen_as.second_set = std::min((seen.nodes + 1) / 2, 13U) + 14 * (ones + 4 * distance);
    seen_as.map = child | std::min(known, 15U) << 3 | std::min(unknown / 2, 7U) << 7;
    if constexpr (kExpects != Expectation::none) {
      const std::uint64_t window = seen.expected >> window_at(child) & kWholeWindow;
      const std::uint64_t middle = (window & kWindowMiddle) != 0 ? 1 : 0;
      const unsigned around = weight_sites(window & kWindow);
      const std::uint64_t hint = middle | std::uint64_t{std::min((around + 1) / 2, 15U)} << 1;
      seen_as.contexts[8] = context_hash(window, child | fine << 3 | UINT64_C(4) << 32);
      seen_as.contexts[9] = context_hash(hint | here << 8 | std::uint64_t{std::min(known, 15U)} << 16 |
                                             std::uint64_t{std::min(unknown, 15U)} << 20 | std::uint64_t{ones} << 24,
                                         5);
      seen_as.contexts[10] = context_hash(path | classes.occupancy << 8 | fine << 16, 6);
      seen_as.contexts[11] =
          context_hash(static_cast<std::uint64_t>(static_cast<std::int64_t>(view.elevation(child))),
                       distance | middle << 4 | std::uint64_t{around > 3} << 5 | std::uint64_t{ones > 0} << 6 | 256);
      std::uint64_t sure = hint;
      if constexpr (has_weights(kExpects)) {
        const std::uint64_t weight = seen.weights[child];
        const std::uint64_t level = classes.level[child];
        seen_as.contexts[12] = context_hash(level | std::uint64_t{std::min(around, 31U)} << 3 | here << 8 |
                                                std::uint64_t{std::min(known, 15U)} << 16 | std::uint64_t{ones} << 24,
                                            9);
        seen_as.contexts[13] =
            context_hash(std::min<std::uint64_t>(weight, 63) | (window & kWindowFaces) << 6, here | UINT64_C(10) << 32);
        seen_as.contexts[14] =
            context_hash(level | std::uint64_t{view.band()} << 3 | here << 8 |
                             std::uint64_t{std::min(around, 15U)} << 16 | std::uint64_t{std::min(unknown, 7U)} << 20,
                         11);
        seen_as.contexts[15] = context_hash(path | classes.all << 8 | fine << 24, 12);
        if constexpr (kExpects == Expectation::known) {
          const std::uint64_t own_known = classes.own_known[child];
          const std::uint64_t is_expected = level > 0 ? 1 : 0;
          seen_as.contexts[16] = context_hash(own_known | level << 4 | here << 8 |
                                                  std::uint64_t{std::min(known, 15U)} << 16 | std::uint64_t{ones} << 24,
                                              20);
          seen_as.contexts[17] =
              context_hash(std::min<std::uint64_t>(seen.known[child], 127) | std::min<std::uint64_t>(weight, 15) << 8,
                           here | UINT64_C(21) << 32);
          seen_as.contexts[18] = context_hash(path | classes.each_known << 8 | fine << 24, 22);
          seen_as.contexts[19] =
              context_hash(own_known | std::uint64_t{view.band()} << 4 | here << 8 | is_expected << 16 |
                               std::uint64_t{ones} << 17 | std::uint64_t{std::min(around, 7U)} << 20,
                           23);
          seen_as.contexts[20] = context_hash(own_known | std::uint64_t{std::min(around, 31U)} << 4 | here << 9 |
                                                  std::uint64_t{std::min(unknown, 15U)} << 16,
                                              24);
          seen_as.contexts[21] = context_hash((full | possible) & (kWindowFaces | kWindowEdges),
                                              own_known | child << 4 | UINT64_C(25) << 32);
          seen_as.contexts[22] = context_hash(own_known | std::uint64_t{view.height()} << 4 |
                                                  std::uint64_t{view.band()} << 12 | here << 16 | is_expected << 24,
                                              26);
          seen_as.contexts[23] = context_hash(
              own_known | classes.all_level << 4 | here << 8 | level << 16 | std::uint64_t{std::min(known, 7U)} << 20,
              27);
        }
        sure = level * 4 + std::min((around + 1) / 2, 3U);
        seen_as.map = static_cast<std::uint32_t>(child | std::min(known, 15U) << 3 | level << 7);
      }
      seen_as.second_set = static_cast<std::uint32_t>(sure + 32 * (ones + 4 * distance));
    }
    return seen_as;
  }

  ContextMixer<kContexts> mixer_;
  unsigned level_ = 0;
  unsigned group_ = 0;
};

/// What is known when the sites of a cube of a centred lattice are coded. Slot by slot of the 27 cubes around.
struct HalfSites {
  unsigned odd_around = 0;    ///< bit 1..7: the odd site of a coded cube at -x, -y, -z, ... touches the even one
  unsigned even_around = 0;   ///< the same of even sites and the cubes at +x, +y, +z, ...
  unsigned cubes_behind = 0;  ///< cubes at +x, +y, +z, ... that are not coded yet, same bits
  unsigned faces = 0;
  unsigned face_halves = 0;  ///< halves of the coded cubes at -x, -y, -z, two bits each
  unsigned evens = 0;        ///< even sites in the coded cubes around
  unsigned odds = 0;
  unsigned cubes = 0;  ///< cubes around
  // By the prediction:
  unsigned expected = 0;                  ///< halves of the cube itself
  unsigned expected_odds = 0;             ///< odd sites that touch the even one, but for the cube's own
  unsigned expected_evens = 0;            ///< even sites that touch the odd one, but for the cube's own
  unsigned expected_faces = 0;            ///< halves of the six cubes at faces, two bits each
  std::array<std::uint8_t, 2> weights{};  ///< of the points expected at the even and the odd site
  std::array<std::uint8_t, 2> known{};    ///< points known there, seen or not
};

template <Expectation kExpects>
class HalfModel {
 public:
  explicit HalfModel(std::uint64_t cubes) : mixer_(table_bits_for(cubes), 2 * 14, 16 * 16) {}

  /// Codes which sites of a cube are taken: 1, 2 or 3.
  template <class Coder>
  unsigned code(Coder& coder, const HalfSites& seen, std::uint32_t layer, unsigned halves = 0) {
    const unsigned even = mixer_.code(coder, context(seen, layer, 0), halves & 1);
    if (even == 0) return 2;
    return 1 | mixer_.code(coder, context(seen, layer, 1), halves >> 1) << 1;
  }

 private:
  static constexpr unsigned kContexts = kExpects == Expectation::none      ? 5
                                        : kExpects == Expectation::marked  ? 8
                                        : kExpects == Expectation::weighed ? 11
                                                                           : 15;

  DecisionContext<kContexts> context(const HalfSites& seen, std::uint32_t layer, std::uint64_t half) const {
    const std::uint64_t evens = std::min(seen.evens, 15U);
    const std::uint64_t odds = std::min(seen.odds, 15U);
    const unsigned cubes = std::min((seen.cubes + 1) / 2, 13U);
    const std::array<std::uint32_t, 5> own = {
        context_hash(seen.odd_around | half << 8 | std::uint64_t{seen.even_around} << 9, 1),
        context_hash(seen.faces | half << 6 | std::uint64_t{seen.face_halves} << 7, 2),
        context_hash(evens | odds << 4 | std::uint64_t{cubes} << 8 | half << 12, 3),
        context_hash(seen.even_around | std::uint64_t{seen.cubes_behind} << 8 | half << 16, 4),
        context_hash(std::uint64_t{layer} << 1 | half, 5),
    };
    DecisionContext<kContexts> seen_as;
    std::copy(own.begin(), own.end(), seen_as.contexts.begin());
    if constexpr (kExpects != Expectation::none) {
      const std::uint64_t around = std::min(half == 0 ? seen.expected_odds : seen.expected_evens, 7U);
      const std::uint64_t hint = seen.expected | half << 2 | around << 3;
      seen_as.contexts[5] = context_hash(hint, 6);
      seen_as.contexts[6] = context_hash(hint | std::uint64_t{seen.expected_faces} << 8, 7);
      seen_as.contexts[7] = context_hash(hint | evens << 8 | odds << 12, 8);
      if constexpr (has_weights(kExpects)) {
        const auto weight = [&](unsigned which) { return std::uint64_t{kernels::bit_length(seen.weights[which])}; };
        const std::uint64_t both = weight(0) | weight(1) << 4 | half << 8;
        seen_as.contexts[8] = context_hash(both | around << 9, 13);
        seen_as.contexts[9] =
            context_hash(both | evens << 9 | odds << 13 | std::uint64_t{seen.even_around != 0} << 17, 14);
        seen_as.contexts[10] = context_hash(std::min<std::uint64_t>(seen.weights[0], 31) |
                                                std::min<std::uint64_t>(seen.weights[1], 31) << 5 | half << 10,
                                            15);
        if constexpr (kExpects == Expectation::known) {
          const auto known = [&](unsigned which) { return std::uint64_t{kernels::bit_length(seen.known[which])}; };
          const std::uint64_t both_known = known(0) | known(1) << 4 | half << 8;
          seen_as.contexts[11] = context_hash(both_known | std::uint64_t{seen.expected} << 9 | around << 11, 30);
          seen_as.contexts[12] =
              context_hash(both_known | evens << 9 | odds << 13 | std::uint64_t{seen.even_around != 0} << 17, 31);
          seen_as.contexts[13] = context_hash(both_known | both << 9, 32);
          seen_as.contexts[14] = context_hash(std::uint64_t{seen.odd_around} | both_known << 9, 33);
        }
      }
    }
    seen_as.first_set = static_cast<std::uint32_t>(half * 14) + cubes;
    seen_as.second_set = static_cast<std::uint32_t>(evens * 16 + odds);
    seen_as.map = static_cast<std::uint32_t>(half | std::uint64_t{std::min(seen.cubes, 31U)} << 1);
    return seen_as;
  }

  ContextMixer<kContexts> mixer_;
};

}  // namespace quern::codec::lidar

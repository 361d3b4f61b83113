// The pieces the scan codec is made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <set>

#include "codecs/lidar/coding/bit_coder.h"
#include "codecs/lidar/coding/context_mixer.h"
#include "codecs/lidar/coding/number_coder.h"
#include "codecs/lidar/columns/column_coder.h"
#include "codecs/lidar/exact/exact_scale.h"
#include "codecs/lidar/exact/residuals.h"
#include "codecs/lidar/geometry/cover.h"
#include "codecs/lidar/geometry/fixed_point.h"
#include "codecs/lidar/geometry/near_points.h"
#include "codecs/lidar/octree/neighbourhood.h"
#include "codecs/lidar/octree/tree.h"
#include "codecs/lidar/order/order_coder.h"
#include "codecs/lidar/rays/direction.h"
#include "codecs/lidar/rays/rays.h"
#include "kernels/common/bits.h"
#include "tests/unit_lidar/clouds.h"

namespace quern::codec::lidar {
namespace {

using namespace quern::lidar_test;

TEST(Logistic_Tables, RiseAndInvertEachOther) {
  for (int x = -kMostStretched + 1; x <= kMostStretched; ++x) EXPECT_GE(squash(x), squash(x - 1));
  EXPECT_EQ(squash(0), 32768U);
  EXPECT_EQ(squash(256), 43691U);  // 2 / 3
  EXPECT_EQ(squash(1 << 20), squash(kMostStretched));
  for (std::uint32_t p = 64; p < 65472; p += 16)
    EXPECT_NEAR(static_cast<double>(squash(stretch(p))), p, 16 + p / 200.0);
}

TEST(Morton_Coordinates, ComeBack) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t x = random.next() & 0x1FFFFF, y = random.next() & 0x1FFFFF, z = random.next() & 0x1FFFFF;
    const std::uint64_t key = morton(x, y, z);
    EXPECT_EQ(morton_x(key), x);
    EXPECT_EQ(morton_y(key), y);
    EXPECT_EQ(morton_z(key), z);
  }
  EXPECT_EQ(morton(1, 0, 0), 4U);
  EXPECT_EQ(morton(0, 1, 0), 2U);
  EXPECT_EQ(morton(0, 0, 3), 9U);
}

TEST(Neighbourhood_Tables, AgreeWithCoordinates) {
  EXPECT_EQ(count_sites(kWindowFaces), 6U);
  EXPECT_EQ(count_sites(kWindowEdges), 12U);
  EXPECT_EQ(count_sites(kWindowCorners), 8U);
  for (unsigned child = 0; child < 8; ++child) {
    EXPECT_EQ(sites_of_children(kMiddleSite, 1U << child), UINT64_C(1) << own_site(child));
    EXPECT_EQ(kNeighbourhood.child_sites[kMiddleSite][child], own_site(child));
    EXPECT_EQ(corner_sites(kOwnSites[1U << child] >> kMiddleSite), 1U << child);
    EXPECT_EQ(reversed(1U << child), 1U << (7 - child));
  }
  // Of the neighbour at +x (site 37) the children at x = 0 lie beside the own ones at x = 1; the others lie outside.
  EXPECT_EQ(kNeighbourhood.slots[37], 22);
  EXPECT_EQ(kNeighbourhood.child_sites[37][0], own_site(4) + 16);
  EXPECT_EQ(kNeighbourhood.child_sites[37][4], kNoSite);
  EXPECT_EQ(sites_of_children(37, 0x11), UINT64_C(1) << (own_site(4) + 16));
  for (unsigned site = 0; site < 43; ++site) {
    const std::uint64_t one = UINT64_C(1) << site & kWindow;
    EXPECT_EQ(weight_sites(one), one == 0 ? 0U : (one & kWindowFaces) != 0 ? 2U : 1U);
    for (unsigned occupancy = 0; occupancy < 256; ++occupancy) {
      if (one == 0) continue;
      std::uint64_t sites = 0;
      for (unsigned child = 0; child < 8; ++child)
        if (const unsigned at = kNeighbourhood.child_sites[site][child]; (occupancy >> child & 1) != 0 && at != kNoSite)
          sites |= UINT64_C(1) << at;
      EXPECT_EQ(sites_of_children(site, occupancy), sites);
    }
  }
  EXPECT_EQ(weight_sites(kWindow), 32U);
}

TEST(NumberModel_AnyNumber, ComesBack) {
  Random random(2);
  std::vector<std::uint64_t> numbers = {0, 1, 2, UINT64_MAX, UINT64_MAX / 2, 255, 256};
  for (int i = 0; i < 2000; ++i) numbers.push_back(random.next() >> random.below(64));
  Vector<std::uint8_t> bytes;
  BitWriter writer(bytes);
  NumberModel model;
  for (const std::uint64_t number : numbers) model.code(writer, number);
  writer.finish();
  BitReader reader(bytes);
  NumberModel other;
  for (const std::uint64_t number : numbers) EXPECT_EQ(other.code(reader), number);
  EXPECT_TRUE(reader.good());
  EXPECT_FALSE(reader.has_more());
}

/// What lanes hold, as words with the upper halves of other lanes.
template <class AnyLanes>
std::array<std::uint32_t, kLanes> words_of(const AnyLanes& lower, const AnyLanes& upper) {
  std::array<std::uint32_t, kLanes> words{};
  join(lower, upper, words);
  return words;
}

/// Every operation on lanes, in a list.
template <class AnyLanes>
std::vector<std::array<std::uint32_t, kLanes>> all_operations(const std::array<std::uint32_t, kLanes>& words) {
  const auto a = AnyLanes::lower_halves(words);
  const auto b = AnyLanes::upper_halves(words);
  std::vector<std::array<std::uint32_t, kLanes>> results = {
      words_of(a + b, a - b),
      words_of(a ^ b, a | b),
      words_of(and_not(a, b), a << 1),
      words_of(a >> 3, least(a, b)),
      words_of(most(a, b), is_zero(a)),
      words_of(lower_half(a, b), upper_half(a, b)),
      words_of(upper_half_unsigned(a, b), AnyLanes::all(-7)),
  };
  const std::array<AnyLanes, 2> left = {a >> 4, b >> 4}, right = {b, a};
  results.push_back({static_cast<std::uint32_t>(dot(left, right))});
  return results;
}

TEST(Lanes_OfARegister, GiveWhatThoseOfAnArrayGive) {
  Random random(31);
  for (int round = 0; round < 2000; ++round) {
    std::array<std::uint32_t, kLanes> words{};
    for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random.below(UINT64_C(1) << 32));
    if (round % 2 == 0) words[round / 2 % kLanes] &= round % 4 == 0 ? 0xFFFF0000 : 0x8000FFFF;
    EXPECT_EQ(all_operations<Lanes>(words), all_operations<plain::Lanes>(words));
  }
}

TEST(Lanes_ProductsOf24ContextsAtTheirMost, AddUpBeyond32Bits) {
  // Six groups: stretched probabilities and probabilities of 24 counters that are sure of a zero and fully trusted.
  const auto sum = []<class AnyLanes>(const AnyLanes&, std::int16_t weight) {
    const AnyLanes stretched = AnyLanes::all(-2916);
    const AnyLanes direct = AnyLanes::all(-972);
    const AnyLanes weights = AnyLanes::all(weight);
    const std::array<AnyLanes, 6> inputs = {stretched, stretched, stretched, direct, direct, direct};
    return dot(inputs, {weights, weights, weights, weights, weights, weights});
  };
  for (const int weight : {30000, -30000}) {
    const std::int64_t expected = INT64_C(-24) * 3888 * weight;
    EXPECT_GT(std::abs(expected), INT64_C(1) << 31);
    EXPECT_EQ(sum(Lanes(), static_cast<std::int16_t>(weight)), expected);
    EXPECT_EQ(sum(plain::Lanes(), static_cast<std::int16_t>(weight)), expected);
  }
}

TEST(CounterLanes_AnyCounters, LearnAsCountersDo) {
  Random random(32);
  for (int round = 0; round < 5000; ++round) {
    CounterLanes::Words words{};
    std::array<Counter, kLanes> counters;
    for (unsigned i = 0; i < kLanes; ++i) {
      const auto one = static_cast<std::uint16_t>(round % 8 == 0 ? 65535 * (i & 1) : random.below(65536));
      counters[i] = {one, static_cast<std::uint16_t>(random.below(kCounterAges))};
      words[i] = counters[i].one | std::uint32_t{counters[i].age} << 16;
    }
    CounterLanes lanes(words);
    std::array<std::uint32_t, kLanes> stretched{}, inputs{}, expected{};
    for (unsigned i = 0; i < kLanes; ++i) {
      stretched[i] = static_cast<std::uint32_t>(stretch(counters[i].one));
      const int trusted = stretch(counters[i].one) * counters[i].trust() >> 8;
      const int direct = (int{counters[i].one} - 32768) * counters[i].trust() >> 13;
      expected[i] = static_cast<std::uint16_t>(trusted) | static_cast<std::uint32_t>(direct) << 16;
    }
    join(lanes.trusted(Lanes::lower_halves(stretched)), lanes.trusted_directly(), inputs);
    EXPECT_EQ(inputs, expected);
    const unsigned bit = round & 1;
    lanes.update(bit);
    lanes.store(words);
    for (unsigned i = 0; i < kLanes; ++i) {
      counters[i].update(bit);
      EXPECT_EQ(words[i], counters[i].one | std::uint32_t{counters[i].age} << 16);
    }
  }
}

TEST(ContextMixer_PredictableDecisions, CostLittle) {
  Vector<std::uint8_t> bytes;
  BitWriter writer(bytes);
  ContextMixer<2> mixer(8, 1, 1);
  constexpr unsigned kDecisions = 10000;
  for (unsigned i = 0; i < kDecisions; ++i) mixer.code(writer, {{context_hash(i % 5), 7}, 0, 0, 0}, i % 5 == 3 ? 1 : 0);
  writer.finish();
  EXPECT_LT(bytes.size(), kDecisions / 100);
  BitReader reader(bytes);
  ContextMixer<2> other(8, 1, 1);
  for (unsigned i = 0; i < kDecisions; ++i)
    ASSERT_EQ(other.code(reader, {{context_hash(i % 5), 7}, 0, 0, 0}), i % 5 == 3 ? 1U : 0U);
}

TEST(Lattice_OfABound, CoversSpaceWithinIt) {
  Random random(3);
  for (const std::int64_t reach : {254, 400, 1000, 51198, 383998}) {
    const auto lattice = lattice_for(reach);
    ASSERT_TRUE(lattice.has_value());
    const SiteFinder finder(*lattice, reach);
    for (int i = 0; i < 2000; ++i) {
      FinePoint point;
      for (std::int64_t& at : point)
        at = 8 * lattice->spacing * kFine + static_cast<std::int64_t>(random.below(1000000));
      std::map<std::uint64_t, std::int64_t> within;
      finder.each_within(point, [&](std::uint64_t site, std::int64_t square) { within[site] = square; });
      ASSERT_FALSE(within.empty());
      std::int64_t least = INT64_MAX;
      for (const auto& [site, square] : within) {
        const auto at = unpack_site(site);
        FinePoint place;
        for (unsigned axis = 0; axis < 3; ++axis)
          place[axis] = static_cast<std::int64_t>(at[axis]) * lattice->spacing * kFine;
        EXPECT_EQ(squared_distance(place, point), square);
        EXPECT_TRUE(!lattice->centred || ((at[0] + at[1]) % 2 == 0 && (at[0] + at[2]) % 2 == 0));
        least = std::min(least, square);
      }
      EXPECT_EQ(within.at(finder.nearest(point)), least);
    }
  }
  EXPECT_FALSE(lattice_for(100).has_value());
  EXPECT_TRUE(lattice_for(400)->centred);
  EXPECT_FALSE(lattice_for(254)->centred);
}

TEST(Cover_OfPoints, NeedsFewerSitesThanNearestOnes) {
  Random random(4);
  const std::int64_t reach = 51198;
  const auto lattice = lattice_for(reach);
  const SiteFinder finder(*lattice, reach);
  Vector<FinePoint> points;
  std::set<std::uint64_t> nearest;
  for (int i = 0; i < 3000; ++i) {
    FinePoint point;
    for (unsigned axis = 0; axis < 3; ++axis)
      point[axis] =
          16 * lattice->spacing * kFine + static_cast<std::int64_t>(random.below(axis == 2 ? 100000 : 2000000));
    points.push_back(point);
    nearest.insert(finder.nearest(point));
  }
  const auto sites = cover(points, *lattice, reach);
  EXPECT_LT(sites.size(), nearest.size());
  const std::set<std::uint64_t> chosen(sites.begin(), sites.end());
  EXPECT_EQ(chosen.size(), sites.size());
  for (const FinePoint& point : points) {
    bool covered = false;
    finder.each_within(point, [&](std::uint64_t site, std::int64_t) { covered = covered || chosen.count(site) > 0; });
    EXPECT_TRUE(covered);
  }
}

TEST(NearPoints_Search, FindsWhatBruteForceFinds) {
  Random random(6);
  Vector<FinePoint> points;
  for (int i = 0; i < 500; ++i) {
    FinePoint point;
    for (std::int64_t& at : point) at = static_cast<std::int64_t>(random.below(4000)) - 2000;
    points.push_back(point);
  }
  const std::int64_t reach = 300;
  const NearPoints near(points, reach, 1);
  for (int i = 0; i < 500; ++i) {
    FinePoint from;
    for (std::int64_t& at : from) at = static_cast<std::int64_t>(random.below(5000)) - 2500;
    std::int64_t least = INT64_MAX;
    for (const FinePoint& point : points) {
      const std::int64_t square = squared_distance(point, from);
      if (square <= reach * reach) least = std::min(least, square);
    }
    const NearPoints::Nearest found = near.nearest(from);
    EXPECT_EQ(found.square, least);
    // Any hint gives the same.
    const auto hint = static_cast<std::uint32_t>(random.below(points.size()));
    const NearPoints::Nearest hinted = near.nearest(from, {squared_distance(points[hint], from), hint});
    EXPECT_EQ(hinted.square, found.square);
    EXPECT_EQ(hinted.index, found.index);
  }
}

TEST(Tree_OfAnyBlock, ComesBack) {
  Random random(8);
  for (int round = 0; round < 60; ++round) {
    Block block;
    block.depth = static_cast<unsigned>(random.below(kMostDepth + 1));
    const std::uint64_t span = UINT64_C(1) << (3 * block.depth);
    std::set<std::uint64_t> cubes;
    for (std::uint64_t i = random.below(200) + 1; i > 0; --i)
      cubes.insert(random.below(round % 3 == 0 ? std::min<std::uint64_t>(span, 256) : span));
    const bool centred = round % 2 == 0;
    block.cubes.assign(cubes.begin(), cubes.end());
    std::uint64_t points = 0;
    for (std::size_t i = 0; i < cubes.size(); ++i) {
      block.halves.push_back(static_cast<std::uint8_t>(centred ? 1 + random.below(3) : 1));
      for (unsigned half = 0; half < (block.halves.back() == 3 ? 2U : 1U); ++half) {
        block.counts.push_back(static_cast<std::uint32_t>(1 + random.below(5) * random.below(5)));
        points += block.counts.back();
      }
    }
    if (round % 5 == 0) block.counts.clear();
    block.origin = {static_cast<std::int64_t>(random.below(1000)) * -2, 4, 1 << 20};
    const Surroundings surroundings{{static_cast<std::int64_t>(1 + random.below(1000)), centred}, 10000};
    const bool counted = !block.counts.empty();
    const auto bytes = encode_block(block, surroundings);
    Block back;
    back.origin = block.origin;
    back.depth = block.depth;
    ASSERT_TRUE(decode_block(bytes, surroundings, block.cubes.size(), counted, counted ? points : 0, back).ok());
    EXPECT_TRUE(back.cubes == block.cubes && back.halves == block.halves && back.counts == block.counts);
  }
}

TEST(Order_OfPoints, ComesBackAndIsCheapAlongALine) {
  Vector<Site> sites;
  Vector<std::uint32_t> counts;
  Vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    sites.push_back({2 * (i * 1234577 % 2000), 0, 0});
    counts.push_back(1);
  }
  order.resize(2000);
  for (std::uint32_t i = 0; i < 2000; ++i) order[static_cast<std::size_t>(sites[i][0] / 2)] = i;
  const auto bytes = encode_order(sites, counts, order);
  EXPECT_LT(bytes.size(), 200U);
  Vector<std::uint32_t> back(order.size());
  ASSERT_TRUE(decode_order(bytes, sites, counts, back).ok());
  EXPECT_TRUE(back == order);
}

TEST(Order_OfACrowd, ComesBack) {
  Random random(12);
  Vector<Site> sites;
  Vector<std::uint32_t> counts;
  Vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    sites.push_back({static_cast<std::int64_t>(random.below(20)), static_cast<std::int64_t>(random.below(20)), 0});
    counts.push_back(1 + static_cast<std::uint32_t>(random.below(3)));
    order.insert(order.end(), counts.back(), i);
  }
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const auto bytes = encode_order(sites, counts, order);
  Vector<std::uint32_t> back(order.size());
  ASSERT_TRUE(decode_order(bytes, sites, counts, back).ok());
  EXPECT_TRUE(back == order);
}

TEST(Column_AnyValues, ComeBackAndNeverGrow) {
  Random random(9);
  for (const unsigned width : {1U, 2U, 4U, 8U}) {
    for (const std::uint64_t distinct : {UINT64_C(1), UINT64_C(2), UINT64_C(200), UINT64_C(5000), UINT64_MAX}) {
      for (const std::size_t count : {0, 1, 2, 700}) {
        Vector<std::uint8_t> values;
        for (std::size_t i = 0; i < count; ++i) {
          const std::uint64_t value = random.below(distinct) * UINT64_C(0x9E3779B97F4A7C15);
          for (unsigned b = 0; b < width; ++b) values.push_back(static_cast<std::uint8_t>(value >> (8 * b)));
        }
        const auto bytes = encode_column(values, width);
        EXPECT_LE(bytes.size(), values.size() + 1);
        Vector<std::uint8_t> back(values.size());
        ASSERT_TRUE(decode_column(bytes, width, back).ok());
        EXPECT_TRUE(back == values);
      }
    }
  }
}

TEST(Residuals_AnyValues, ComeBack) {
  Random random(10);
  Vector<std::int64_t> decoded, exact;
  for (int i = 0; i < 300; ++i) {
    decoded.push_back(static_cast<std::int64_t>(random.below(UINT32_MAX)));
    exact.push_back(i % 3 == 0   ? decoded.back()
                    : i % 3 == 1 ? decoded.back() + 5
                                 : static_cast<std::int64_t>(random.below(UINT32_MAX)));
  }
  const auto bytes = encode_residuals(decoded, exact);
  ASSERT_TRUE(apply_residuals(bytes, decoded).ok());
  EXPECT_TRUE(decoded == exact);
  EXPECT_TRUE(encode_residuals(exact, exact).empty());
}

TEST(OrderedWord_OfFloats, RisesWithThem) {
  const float rising[] = {-3e38F, -1, -1e-45F, -0.0F, 0.0F, 1e-45F, 1, 3e38F};
  for (std::size_t i = 1; i < std::size(rising); ++i)
    EXPECT_LT(
        static_cast<std::int32_t>(kernels::ordered_key<std::uint32_t>(std::bit_cast<std::uint32_t>(rising[i - 1]))),
        static_cast<std::int32_t>(kernels::ordered_key<std::uint32_t>(std::bit_cast<std::uint32_t>(rising[i]))));
  EXPECT_EQ(kernels::ordered_key<std::uint32_t>(kernels::ordered_key<std::uint32_t>(0xC2345678U)), 0xC2345678U);
}

TEST(Rays_OfASpinningScan, ComeBackWithinReach) {
  for (const bool by_columns : {false, true}) {
    TestCloud cloud = spinning_scan(16, 300, 9, false);
    FinePoints fine = fine_points(cloud.words, {});
    if (by_columns) std::reverse(fine.points.begin(), fine.points.end());
    for (const std::uint32_t bound : {10U, 200U, 1500U}) {
      const std::int64_t reach = enforceable(bound) - 10;
      const std::int64_t spacing = lattice_for(reach)->spacing;
      const auto bytes = encode_rays(fine.points, spacing, reach);
      ASSERT_TRUE(bytes.has_value());
      Vector<Site> back(fine.points.size());
      ASSERT_TRUE(decode_rays(*bytes, spacing, back).ok());
      std::size_t beyond = 0;
      for (std::size_t i = 0; i < back.size(); ++i)
        beyond += squared_distance({back[i][0] * kFine, back[i][1] * kFine, back[i][2] * kFine}, fine.points[i]) >
                          reach * reach
                      ? 1
                      : 0;
      EXPECT_LT(beyond, back.size() / 50);
    }
  }
}

TEST(Rays_FarAway, AreRefused) {
  const Vector<FinePoint> points = {{INT64_C(1) << 40, 0, 0}};
  EXPECT_FALSE(encode_rays(points, 100, 20000).has_value());
}

TEST(StepTable_AnyVector, GivesTheNearestStep) {
  const StepTable table(direction_of(1000000, 3130));
  EXPECT_GT(table.most(), 1000);
  for (const std::int64_t steps : {INT64_C(0), INT64_C(1), INT64_C(-1), INT64_C(2), INT64_C(500), INT64_C(-1000)}) {
    const Direction at = table.direction(steps);
    EXPECT_EQ(table.nearest(at.x >> 8, at.y >> 8), steps);
  }
}

TEST(ExactScale_OfMillimetres, IsFound) {
  const TestCloud decimal = spinning_scan(4, 100, 1, true);
  const auto scale = exact_scale(CoordinateType::f32, decimal.words);
  ASSERT_TRUE(scale.has_value());
  EXPECT_EQ(scale->per_metre, 1000U);
  EXPECT_FALSE(exact_scale(CoordinateType::f32, spinning_scan(4, 100, 1, false).words).has_value());
}

}  // namespace
}  // namespace quern::codec::lidar

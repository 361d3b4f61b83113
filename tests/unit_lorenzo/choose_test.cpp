// The sample's tiles, and how their costs decide.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <vector>

#include "codecs/lorenzo/choose.h"
#include "codecs/lorenzo/rules.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkRules;
using kernels::Predictor;
using kernels::TileShape;

// As on a device.
constexpr SampleTiles kConstant({{50, 100, 200}, {8, 16, 32}}, TileShape::block, UINT64_C(1000000));
static_assert(kConstant.size() == kSampleTiles && kConstant[0].box.extents[2] <= 32);

TEST(SampleTiles, LieInTheSampleAndDoNotMeet) {
  std::mt19937_64 random(61);
  for (int round = 0; round < 300; ++round) {
    ChunkGrid grid;
    for (std::uint64_t& extent : grid.extents) extent = 1 + random() % 90;
    const std::uint64_t all = grid.extents[0] * grid.extents[1] * grid.extents[2];
    const std::uint64_t elems = round % 2 == 0 ? all : 1 + random() % all;
    for (const TileShape shape : {TileShape::line, TileShape::plane, TileShape::block}) {
      const SampleTiles tiles(grid, shape, elems);
      ASSERT_GE(tiles.size(), 1u);
      ASSERT_LE(tiles.size(), kSampleTiles);
      std::set<std::uint64_t> seen;
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i < tiles.size(); ++i) {
        const auto tile = tiles[i];
        const auto& n = tile.box.extents;
        const auto size = kernels::tile_extents(shape);
        sum += tile.elems();
        for (std::size_t a = 0; a < 3; ++a) {
          ASSERT_GE(n[a], 1u);
          ASSERT_LE(n[a], size[a]);
        }
        for (std::uint64_t z = 0; z < n[0]; ++z)
          for (std::uint64_t y = 0; y < n[1]; ++y)
            for (std::uint64_t x = 0; x < n[2]; ++x) {
              const std::uint64_t at = tile.first + z * tile.box.strides[0] + y * tile.box.strides[1] + x;
              ASSERT_LT(at, elems) << "seed 61, round " << round;
              ASSERT_TRUE(seen.insert(at).second) << "seed 61, round " << round;
            }
      }
      EXPECT_EQ(tiles.elems(), sum);
    }
  }
}

TEST(Candidates, OneThatIsAlwaysBest_StaysAlone) {
  std::vector<TileCosts> costs(10);
  for (TileCosts& tile : costs) {
    tile.fill(1000);
    tile[static_cast<std::size_t>(Predictor::xy)] = 200;
  }
  ChunkRules rules;
  rules.tile = TileShape::plane;
  choose_candidates(costs, rules);
  ASSERT_EQ(rules.candidate_count, 1u);
  EXPECT_EQ(rules.candidates[0], Predictor::xy);
  // On lines it means nothing, and all others cost the same: the lowest number.
  rules.tile = TileShape::line;
  choose_candidates(costs, rules);
  ASSERT_EQ(rules.candidate_count, 1u);
  EXPECT_EQ(rules.candidates[0], Predictor::none);
}

TEST(Candidates, EachTileWithABestOfItsOwn_TakesTheFourThatSaveMost) {
  std::vector<TileCosts> costs(kSampleTiles);
  for (std::size_t t = 0; t < costs.size(); ++t) {
    costs[t].fill(1000);
    // 7 tiles of predictor 0, 7 of 1, ... ; those with a higher number save more.
    const std::size_t best = t / 7;
    if (best < kernels::kPredictors) costs[t][best] = static_cast<std::uint32_t>(500 - 40 * best);
  }
  ChunkRules rules;
  rules.tile = TileShape::block;
  choose_candidates(costs, rules);
  ASSERT_EQ(rules.candidate_count, kernels::kMaxCandidates);
  // Predictor 9 has one tile alone.
  const std::array expected{Predictor::xx, Predictor::xyz, Predictor::yz, Predictor::xz};
  EXPECT_EQ(rules.candidates, expected);
}

TEST(Candidates, Savings_MustReachOneIn128) {
  std::vector<TileCosts> costs(2);
  for (TileCosts& tile : costs) tile.fill(100000);
  costs[0][0] = costs[1][0] = 6400;
  ChunkRules rules;
  rules.tile = TileShape::plane;
  const auto candidates_when = [&](std::uint32_t second) {
    costs[1][1] = second;
    choose_candidates(costs, rules);
    return rules.candidate_count;
  };
  EXPECT_EQ(candidates_when(6400 - 99), 1u);   // 12701 + 99 = 12800, the sum without it
  EXPECT_EQ(candidates_when(6400 - 100), 2u);  // 12700 + 99 is below
}

TEST(Layouts, CostsAreComparedByElement_TiesKeepTheFirst) {
  EXPECT_TRUE(is_cheaper({99, 10}, {100, 10}));
  EXPECT_FALSE(is_cheaper({100, 10}, {100, 10}));
  EXPECT_TRUE(is_cheaper({100, 11}, {100, 10}));
  EXPECT_FALSE(is_cheaper({11, 1}, {100, 10}));
}

}  // namespace
}  // namespace quern::codec::lorenzo

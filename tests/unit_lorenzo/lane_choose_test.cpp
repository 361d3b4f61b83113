// The choice of candidates as a warp makes it, on the emulator: as one thread does.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "codecs/lorenzo/lane_choose.h"
#include "tests/emulator/lane_emulator.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkRules;
using kernels::TileShape;

TEST(LaneCandidates, RandomCosts_AsOneThreadChooses) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE("seed 17, round " + std::to_string(round));
    const std::size_t tiles = round % 3 == 0 ? kSampleTiles : 1 + random() % kSampleTiles;
    const std::uint32_t most = round % 2 == 0 ? 20 : 20000;
    const TileShape shape = std::vector{TileShape::line, TileShape::plane, TileShape::block}[random() % 3];
    std::vector<TileCosts> costs(tiles);
    for (TileCosts& tile : costs)
      for (std::size_t p = 0; p < tile.size(); ++p)
        tile[p] = kernels::predictor_fits(static_cast<kernels::Predictor>(p), shape)
                      ? 1 + static_cast<std::uint32_t>(random() % most)
                      : UINT32_MAX;
    ChunkRules expected;
    expected.tile = shape;
    choose_candidates(costs, expected);
    std::vector<kernels::Predictor> chosen;
    const std::uint32_t count = choose_candidates_lanes<testing::LaneEmulator>(
        costs[0].data(), static_cast<std::uint32_t>(tiles), shape,
        [&](kernels::Predictor predictor) { chosen.push_back(predictor); });
    ASSERT_EQ(count, expected.candidate_count);
    ASSERT_EQ(chosen, std::vector(expected.candidates.begin(), expected.candidates.begin() + count));
  }
}

}  // namespace
}  // namespace quern::codec::lorenzo

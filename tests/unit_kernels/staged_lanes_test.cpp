// Staged tiles through the code that warps run, on the emulator: bytes as on the CPU, or refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/lorenzo/warp/staged_encode.h"
#include "tests/emulator/lane_emulator.h"
#include "tests/unit_kernels/staged_cases.h"

namespace quern::kernels {
namespace {

using quern::testing::EmulatorState;
using quern::testing::LaneEmulator;
using testing::Codes;

constexpr std::size_t kTileBytes = kTileElems * sizeof(std::uint32_t);

/// What a warp has of a tile, full of noise.
struct Memory {
  std::uint32_t stage[kStageWords];
  std::uint32_t payload[kPayloadWords];
  TileRecord record;
};

template <TileShape S>
void encode_tile(const ChunkRules& rules, const std::uint32_t* values, Memory& memory) {
  for (unsigned run = 0; run < kRows; ++run)
    for (unsigned at = 0; at < kLanes; ++at) memory.stage[stage_cell<S>(run, at)] = values[kLanes * run + at];
  EmulatorState::instance().watch(&memory, sizeof memory);
  const StagedRules own = StagedRules::of(rules);
  StagedTile<LaneEmulator> tile;
  read_staged<LaneEmulator, S>(own, memory.stage, tile);
  LaneEmulator::sync();
  const std::uint32_t bytes =
      encode_staged<LaneEmulator, S>(own, tile_slot_bytes(Element::f32), tile, memory.payload, memory.record);
  EmulatorState::instance().watch(nullptr, 0);
  EXPECT_EQ(bytes, memory.record.refused != 0 ? 0 : memory.record.payload);
}

/// The chunk that is this tile alone; nothing if the tile is refused.
std::vector<std::uint8_t> chunk_of_tile(const ChunkRules& rules, const std::uint32_t* values) {
  const auto memory = std::make_unique<Memory>();
  std::memset(static_cast<void*>(memory.get()), 0xa5, sizeof *memory);
  switch (rules.tile) {
    case TileShape::line: encode_tile<TileShape::line>(rules, values, *memory); break;
    case TileShape::plane: encode_tile<TileShape::plane>(rules, values, *memory); break;
    case TileShape::block: encode_tile<TileShape::block>(rules, values, *memory); break;
  }
  return testing::chunk_of_record(memory->record, memory->payload);
}

TEST(StagedLanes, EveryKindOfCodes_BytesAsOnTheCpuOrRefused) {
  EmulatorState::instance().reset(testing::kChunkSeed);
  std::mt19937_64 random(testing::kChunkSeed);
  const testing::CpuTile cpu;
  for (const TileShape tile : {TileShape::line, TileShape::plane, TileShape::block})
    for (const Codes codes : testing::kAllCodes) {
      std::size_t refused = 0, tiles = 0;
      for (const std::uint32_t promised : {0u, 100u, 20000u})
        for (const std::int64_t base : {0, -5, 400, 32768, -65530})
          for (int round = 0; round < 4; ++round) {
            ChunkRules rules = testing::staged_rules(tile, promised);
            testing::choose_any_candidates(rules, random);
            std::vector<std::uint32_t> values(kTileElems);
            for (std::size_t i = 0; i < values.size(); ++i)
              values[i] =
                  std::bit_cast<std::uint32_t>(testing::staged_value(codes, i, rules.params.step, base, random));
            const std::vector<std::uint8_t> expected = cpu.encode(rules, values.data());
            const std::vector<std::uint8_t> got = chunk_of_tile(rules, values.data());
            ++tiles;
            refused += got.empty() ? 1 : 0;
            if (got.empty()) continue;
            ASSERT_EQ(got, expected) << "tile " << static_cast<int>(tile) << " codes " << static_cast<int>(codes)
                                     << " promised " << promised << " base " << base << " seed " << testing::kChunkSeed;
          }
      // A tile with a special value or with payloads beyond its slot is refused, others are not.
      const bool special = codes == Codes::minus_zero || codes == Codes::not_finite;
      if (special) {
        EXPECT_GT(refused, 0u);
      } else if (codes != Codes::rough && codes != Codes::far) {
        EXPECT_EQ(refused, 0u) << "codes " << static_cast<int>(codes);
      }
      EXPECT_LT(refused, tiles) << "codes " << static_cast<int>(codes);
    }
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
  EXPECT_EQ(EmulatorState::instance().races(), 0u);
}

TEST(StagedLanes, PlaneThatIsJustDense_AsOnTheCpu) {
  // Residuals of one bit in chosen groups of 8 rows: numbers of bytes and of level-1 bytes around the point where the
  // sparse form is no smaller.
  EmulatorState::instance().reset(testing::kChunkSeed);
  std::mt19937_64 random(testing::kChunkSeed);
  const testing::CpuTile cpu;
  ChunkRules rules = testing::staged_rules(TileShape::block, 100);
  rules.candidates[0] = Predictor::none;
  rules.candidate_count = 1;
  for (unsigned bytes = 106; bytes <= 114; ++bytes)
    for (int round = 0; round < 20; ++round) {
      std::vector<unsigned> places(kLanes * kGroups);
      for (unsigned i = 0; i < places.size(); ++i) places[i] = i;
      std::shuffle(places.begin(), places.end(), random);
      // By lanes first: as few level-1 bytes as can be.
      if (round % 2 == 0) std::sort(places.begin(), places.begin() + bytes);
      std::vector<std::uint32_t> values(kTileElems);
      for (unsigned i = 0; i < bytes; ++i) {
        const unsigned place = round % 4 < 2 ? places[i] : i;
        const unsigned row = kGroupRows * (place % kGroups) + 1 + static_cast<unsigned>(random() % 7);
        values[kLanes * row + place / kGroups] = std::bit_cast<std::uint32_t>(static_cast<float>(-rules.params.step));
      }
      ASSERT_EQ(chunk_of_tile(rules, values.data()), cpu.encode(rules, values.data()))
          << bytes << " bytes, round " << round;
    }
}

}  // namespace
}  // namespace quern::kernels

// Staged tiles of every element type through the code that warps run, on the emulator: bytes as on the CPU, or refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/lorenzo/warp/staged_elements.h"
#include "tests/emulator/lane_emulator.h"
#include "tests/unit_kernels/staged_cases.h"

namespace quern::kernels {
namespace {

using quern::testing::EmulatorState;
using quern::testing::LaneEmulator;
using testing::Content;

/// What a warp has of a tile, full of noise.
struct Memory {
  alignas(16) std::uint8_t stage[8 * kTileElems];
  std::uint32_t payload[kPayloadWords];
  TileRecord record;
};

template <TileShape S>
void encode_tile(const ChunkRules& rules, Memory& memory) {
  EmulatorState::instance().watch(&memory, sizeof memory);
  const ElementRules own = ElementRules::of(rules);
  StagedTile<LaneEmulator> tile;
  read_elements<LaneEmulator, S>(own, memory.stage, memory.payload, tile);
  LaneEmulator::sync();
  encode_staged<LaneEmulator, S>(own, tile_slot_bytes(rules.element), tile, memory.payload, memory.record);
  EmulatorState::instance().watch(nullptr, 0);
}

std::vector<std::uint8_t> chunk_of_tile(const ChunkRules& rules, const std::vector<std::uint8_t>& values) {
  const auto memory = std::make_unique<Memory>();
  std::memset(static_cast<void*>(memory.get()), 0xa5, sizeof *memory);
  std::memcpy(memory->stage, values.data(), values.size());
  switch (rules.tile) {
    case TileShape::line: encode_tile<TileShape::line>(rules, *memory); break;
    case TileShape::plane: encode_tile<TileShape::plane>(rules, *memory); break;
    case TileShape::block: encode_tile<TileShape::block>(rules, *memory); break;
  }
  return testing::chunk_of_record(memory->record, memory->payload);
}

std::vector<std::uint8_t> make_values(Element element, Content content, std::uint64_t offset, std::mt19937_64& random) {
  const std::size_t size = element_bytes(element);
  std::vector<std::uint8_t> values(size * kTileElems);
  for (std::size_t i = 0; i < kTileElems; ++i) {
    const std::uint64_t bits = testing::element_at(element, content, i, random) + offset;
    std::memcpy(values.data() + size * i, &bits, size);
  }
  return values;
}

/// Whether all elements have codes, and these few planes.
bool is_easy(Element element, QuantizerKind kind, Content content) {
  if (content == Content::constant) return true;
  if (kind == QuantizerKind::exact) return content == Content::smooth && element != Element::f64;
  return content == Content::smooth && element != Element::f16 && element != Element::bf16;
}

constexpr Element kElements[] = {Element::f16, Element::bf16, Element::f64, Element::i8,  Element::i16, Element::i32,
                                 Element::i64, Element::u8,   Element::u16, Element::u32, Element::u64};

TEST(StagedElements, EveryTypeAndContent_BytesAsOnTheCpuOrRefused) {
  EmulatorState::instance().reset(testing::kChunkSeed);
  std::mt19937_64 random(testing::kChunkSeed);
  const testing::CpuTile cpu;
  for (const Element element : kElements)
    for (const QuantizerKind kind : {QuantizerKind::absolute, QuantizerKind::exact})
      for (const TileShape tile : {TileShape::line, TileShape::plane, TileShape::block})
        for (const Content content : testing::kContents) {
          const ChunkRules rules = testing::make_case_rules(element, kind, tile);
          const std::vector<std::uint8_t> values = make_values(element, content, 0, random);
          const std::vector<std::uint8_t> got = chunk_of_tile(rules, values);
          const std::string name = "element " + std::to_string(static_cast<int>(element)) + " quantizer " +
                                   std::to_string(static_cast<int>(kind)) + " tile " +
                                   std::to_string(static_cast<int>(tile)) + " content " +
                                   std::to_string(static_cast<int>(content));
          if (is_easy(element, kind, content)) {
            EXPECT_FALSE(got.empty()) << name;
          }
          if (!got.empty()) {
            ASSERT_EQ(got, cpu.encode(rules, values.data())) << name;
          }
        }
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
  EXPECT_EQ(EmulatorState::instance().races(), 0u);
}

TEST(StagedElements, CodesFarFromZero_CountedFromTheFirst) {
  EmulatorState::instance().reset(testing::kChunkSeed);
  std::mt19937_64 random(testing::kChunkSeed);
  const testing::CpuTile cpu;
  for (const Element element : {Element::i64, Element::u64, Element::i32, Element::u32})
    for (const std::uint64_t offset : {UINT64_C(0x7fffffffffffffc0), UINT64_C(0x123456789abcdef0), UINT64_MAX - 60}) {
      const ChunkRules rules = testing::make_case_rules(element, QuantizerKind::exact, TileShape::block);
      const std::vector<std::uint8_t> values = make_values(element, Content::smooth, offset, random);
      EXPECT_EQ(chunk_of_tile(rules, values), cpu.encode(rules, values.data()))
          << static_cast<int>(element) << ' ' << offset;
    }
}

TEST(StagedElements, ScanOfATile_FindsSpecialValues) {
  EmulatorState::instance().reset(testing::kChunkSeed);
  const std::uint64_t fill = 0x4d00;
  std::uint16_t stage[kTileElems] = {};
  for (unsigned i = 0; i < kTileElems; ++i) stage[i] = static_cast<std::uint16_t>(0x3c00 + i / 2);
  const auto scan = [&](QuantizerKind kind, const LaneFills& fills) {
    const ElementRules rules = ElementRules::of(testing::make_case_rules(Element::f16, kind, TileShape::plane));
    std::uint32_t pairs = 0;
    bool special = false;
    scan_elements<LaneEmulator>(rules, stage, 0, fills, pairs, special);
    EXPECT_EQ(pairs, 64u);
    return special;
  };
  EXPECT_FALSE(scan(QuantizerKind::exact, {}));
  EXPECT_FALSE(scan(QuantizerKind::exact, {&fill, 1}));
  stage[1000] = 0x4d00;
  EXPECT_TRUE(scan(QuantizerKind::exact, {&fill, 1}));
  for (const std::uint16_t value : {std::uint16_t{0x8000}, std::uint16_t{0x7c00}, std::uint16_t{0xfc01}}) {
    stage[1000] = value;
    EXPECT_TRUE(scan(QuantizerKind::exact, {}));
    EXPECT_FALSE(scan(QuantizerKind::absolute, {}));  // the quantizer refuses them
  }
}

}  // namespace
}  // namespace quern::kernels

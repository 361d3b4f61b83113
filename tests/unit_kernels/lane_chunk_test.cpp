// Whole chunks through the code that warps run, on the emulator: bytes and elements as on the CPU, damage judged alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/core/lane_decode.h"
#include "kernels/core/lane_encode.h"
#include "kernels/cpu/lorenzo.h"
#include "tests/emulator/lane_emulator.h"
#include "tests/unit_kernels/chunk_cases.h"

namespace quern::kernels {
namespace {

using quern::testing::EmulatorState;
using X = quern::testing::LaneEmulator;
using testing::ChunkCase;

/// Tiles in a random order, as warps finish.
std::vector<std::uint32_t> tile_order(std::size_t tiles) {
  std::vector<std::uint32_t> order(tiles);
  for (std::size_t t = 0; t < tiles; ++t) order[t] = static_cast<std::uint32_t>(t);
  for (std::size_t t = tiles; t > 1; --t) std::swap(order[t - 1], order[EmulatorState::instance().random() % t]);
  return order;
}

template <TileShape S, class Q, class Exact>
std::vector<std::uint8_t> encode_on_lanes(const ChunkCase& c) {
  using W = typename Q::Word;
  const auto tiles = static_cast<std::uint32_t>(c.tiles());
  const auto* chunk = reinterpret_cast<const typename Q::Bits*>(c.elements.data());
  const Q quantizer = make_quantizer<Q>(c.rules.params);
  std::vector<LaneBuffer<W>> buffers(tiles);
  std::vector<LaneMarks<X>> marks(tiles);
  std::vector<LaneTileInfo> infos(tiles);
  for (const std::uint32_t t : tile_order(tiles)) {
    X::vec<W> q[kRows], z[kRows];
    encode_lanes<X, S, Q, Exact>(c.rules, quantizer, chunk, lane_place<S>(c.box, t), q, z, marks[t], buffers[t],
                                 infos[t]);
  }
  std::vector<std::uint8_t> out(max_lorenzo_chunk_bytes(c.rules.element, tiles));
  std::uint32_t bytes = 0;
  for (const std::uint32_t t : tile_order(tiles))
    bytes = place_lanes<X, S>(infos.data(), t, tiles, chunk, lane_place<S>(c.box, t), marks[t], buffers[t], out.data());
  out.resize(bytes);
  return out;
}

template <TileShape S, class Q, class Exact>
bool decode_on_lanes(const ChunkCase& c, const std::vector<std::uint8_t>& in, std::vector<std::uint8_t>& out) {
  using W = typename Q::Word;
  out.assign(c.elements.size(), 0xa5);
  const auto tiles = static_cast<std::uint32_t>(c.tiles());
  LaneHeads heads;
  if (!read_heads(in.data(), static_cast<std::uint32_t>(in.size()), tiles, heads)) return false;
  bool good = true;
  for (const std::uint32_t t : tile_order(tiles)) {
    X::vec<W> q[kRows];
    LaneBuffer<W> buffer;
    good = decode_lanes<X, S, Q, Exact>(make_quantizer<Q>(c.rules.params), heads.heads[t],
                                        {in.data() + heads.begins[t], heads.heads[t].payload}, lane_place<S>(c.box, t),
                                        q, buffer, reinterpret_cast<typename Q::Bits*>(out.data())) &&
           good;
  }
  return good;
}

/// Calls f for the quantizers that the lane code serves; others are left out.
template <TileShape S, class F>
bool with_lane_quantizer(const ChunkCase& c, F&& f) {
  bool served = false;
  with_quantizer(c.rules.element, c.rules.quantizer, [&]<class Q, class Exact>() {
    if constexpr (!Q::kHasSign && sizeof(typename Q::Word) == 4) {
      f.template operator()<S, Q, Exact>();
      served = true;
    }
  });
  return served;
}
template <class F>
bool with_lane_code(const ChunkCase& c, F&& f) {
  switch (c.rules.tile) {
    case TileShape::line: return with_lane_quantizer<TileShape::line>(c, f);
    case TileShape::plane: return with_lane_quantizer<TileShape::plane>(c, f);
    case TileShape::block: return with_lane_quantizer<TileShape::block>(c, f);
  }
  return false;
}

TEST(LaneChunk, EveryCase_BytesAndElementsAsOnTheCpu) {
  EmulatorState::instance().reset(testing::kChunkSeed);
  std::mt19937_64 random(testing::kChunkSeed);
  const LorenzoKernels& cpu = lorenzo_kernels(IsaLevel::baseline);
  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  const std::unique_ptr<Line[]> scratch(
      new Line[1 + std::max(cpu.encode_scratch_bytes, cpu.decode_scratch_bytes) / sizeof(Line)]);
  std::size_t served = 0;
  for (const ChunkCase& c : testing::chunk_cases()) {
    SCOPED_TRACE(c.name + " seed " + std::to_string(testing::kChunkSeed));
    std::vector<std::uint8_t> bytes(max_lorenzo_chunk_bytes(c.rules.element, c.tiles()));
    bytes.resize(cpu.encode(c.rules, c.elements.data(), c.box, bytes.data(), scratch.get()));
    served += with_lane_code(c, [&]<TileShape S, class Q, class Exact>() {
      ASSERT_EQ((encode_on_lanes<S, Q, Exact>(c)), bytes);
      for (int round = 0; round < 6; ++round) {
        auto damaged = bytes;
        if (round == 1) damaged.resize(random() % damaged.size());
        for (int flips = 0; flips < round - 1; ++flips)
          damaged[random() % std::min<std::size_t>(damaged.size(), 64u << (random() % 8))] ^=
              static_cast<std::uint8_t>(1 + random() % 255);
        std::vector<std::uint8_t> elements(c.elements.size(), 0xa5), others;
        const bool good = cpu.decode(c.rules, damaged.data(), damaged.size(), elements.data(), c.box, scratch.get());
        ASSERT_EQ((decode_on_lanes<S, Q, Exact>(c, damaged, others)), good) << "round " << round;
        if (good) {
          ASSERT_EQ(others, elements) << "round " << round;
        }
      }
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(served, 700u);
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
}

}  // namespace
}  // namespace quern::kernels

// Whole chunks through the code that warps run, on the emulator: bytes and elements as on the CPU, damage found alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/lorenzo/cpu/lorenzo.h"
#include "kernels/lorenzo/warp/estimate.h"
#include "tests/emulator/lane_chunks.h"
#include "tests/support/array_cases.h"
#include "tests/unit_kernels/chunk_cases.h"

namespace quern::kernels {
namespace {

using quern::testing::EmulatorState;
using testing::ChunkCase;

std::vector<std::uint8_t> encode_on_lanes(const ChunkCase& c) {
  return quern::testing::encode_chunk_on_lanes(c.rules, c.elements.data(), c.box);
}

bool decode_on_lanes(const ChunkCase& c, const std::vector<std::uint8_t>& in, std::vector<std::uint8_t>& out) {
  out.assign(c.elements.size(), 0xa5);
  return quern::testing::decode_chunk_on_lanes(c.rules, in, out.data(), c.box);
}

/// The CPU's kernels with scratch of their own.
struct Cpu {
  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  const LorenzoKernels& kernels = lorenzo_kernels(IsaLevel::baseline);
  std::unique_ptr<Line[]> scratch{
      new Line[1 + std::max(kernels.encode_scratch_bytes, kernels.decode_scratch_bytes) / sizeof(Line)]};
};

/// Whether these bytes, which may be damaged, become the same on both: refused, or the same elements.
void compare_decoding(const ChunkCase& c, Cpu& cpu, const std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint8_t> elements(c.elements.size(), 0xa5), others;
  const bool good = cpu.kernels.decode(c.rules, bytes.data(), bytes.size(), elements.data(), c.box, cpu.scratch.get());
  ASSERT_EQ(decode_on_lanes(c, bytes, others), good);
  if (good) {
    ASSERT_EQ(others, elements);
  }
}

/// Holds one case against the CPU: what is encoded, and what becomes of its bytes, whole and damaged.
void compare(const ChunkCase& c, Cpu& cpu, std::mt19937_64& random, int rounds) {
  SCOPED_TRACE(c.name + " seed " + std::to_string(testing::kChunkSeed));
  std::vector<std::uint8_t> bytes(max_lorenzo_chunk_bytes(c.rules.element, c.tiles()));
  bytes.resize(cpu.kernels.encode(c.rules, c.elements.data(), c.box, bytes.data(), cpu.scratch.get()));
  ASSERT_EQ(encode_on_lanes(c), bytes);
  for (int round = 0; round < rounds; ++round) {
    auto damaged = bytes;
    if (round == 1) damaged.resize(random() % damaged.size());
    for (int flips = 0; flips < round - 1; ++flips)
      damaged[random() % std::min<std::size_t>(damaged.size(), 64u << (random() % 8))] ^=
          static_cast<std::uint8_t>(1 + random() % 255);
    ASSERT_NO_FATAL_FAILURE(compare_decoding(c, cpu, damaged)) << "round " << round;
  }
  ASSERT_EQ(EmulatorState::instance().poison_reads(), 0u);
  ASSERT_EQ(EmulatorState::instance().races(), 0u);
}

TEST(LaneChunk, EveryCase_BytesAndElementsAsOnTheCpu) {
  EmulatorState::instance().reset(testing::kChunkSeed);
  std::mt19937_64 random(testing::kChunkSeed);
  Cpu cpu;
  for (const ChunkCase& c : testing::chunk_cases()) {
    compare(c, cpu, random, 6);
    if (HasFatalFailure()) return;
  }
}

/// A whole array of the shared test data as one chunk with ragged edges.
ChunkCase array_case(DType dtype, quern::testing::Data data, TileShape tile, QuantizerKind kind) {
  const Shape shape = tile == TileShape::line    ? quern::testing::shape_of({1, 1, 1500})
                      : tile == TileShape::plane ? quern::testing::shape_of({1, 33, 40})
                                                 : quern::testing::shape_of({5, 8, 33});
  ChunkCase c;
  c.rules = testing::make_case_rules(static_cast<Element>(dtype), kind, tile);
  c.box = {{shape[0], shape[1], shape[2]}, {shape[1] * shape[2], shape[2]}};
  const auto array = quern::testing::make_array(dtype, shape, data);
  c.elements.assign(array.bytes.begin(), array.bytes.end());
  c.name = std::string(quern::testing::data_name(data)) + " element " + std::to_string(static_cast<int>(dtype)) +
           " tile " + std::to_string(static_cast<int>(tile)) + " quantizer " + std::to_string(static_cast<int>(kind));
  return c;
}

TEST(LaneChunk, EveryKindOfData_BytesAndElementsAsOnTheCpu) {
  EmulatorState::instance().reset(testing::kChunkSeed);
  std::mt19937_64 random(testing::kChunkSeed);
  Cpu cpu;
  for (const DType dtype : quern::testing::all_dtypes())
    for (const quern::testing::Data data : quern::testing::all_data())
      for (const TileShape tile : {TileShape::line, TileShape::plane, TileShape::block})
        for (const QuantizerKind kind : {QuantizerKind::absolute, QuantizerKind::pointwise, QuantizerKind::exact}) {
          if (kind == QuantizerKind::pointwise && !is_float(dtype)) continue;
          ChunkCase c = array_case(dtype, data, tile, kind);
          compare(c, cpu, random, 3);
          if (kind == QuantizerKind::absolute && is_float(dtype)) {
            for (const double bound : {1e-42, 1e30}) {
              c.rules.params =
                  dtype == DType::f64 ? testing::float_params<double>(bound) : testing::float_params<float>(bound);
              c.name += " bound " + std::to_string(bound);
              compare(c, cpu, random, 3);
            }
          }
          if (HasFatalFailure()) return;
        }
}

/// Estimates of the first tile of a case's box.
std::array<std::uint32_t, kPredictors> estimate_on_lanes(const ChunkCase& c, const ChunkBox& tile) {
  return quern::testing::with_lane_code(c.rules, [&]<TileShape S, class Bits>() {
    auto buffers = quern::testing::noisy_buffers<LaneBuffer<CodeWord<Bits>>>(1);
    std::array<std::uint32_t, kPredictors> bytes{};
    estimate_lanes<quern::testing::LaneEmulator, S>(c.rules, reinterpret_cast<const Bits*>(c.elements.data()),
                                                    lane_place<S>(tile, 0), buffers[0], bytes.data());
    return bytes;
  });
}

TEST(LaneChunk, EveryCase_PredictorsEstimatedAsOnTheCpu) {
  EmulatorState::instance().reset(testing::kChunkSeed);
  Cpu cpu;
  for (const ChunkCase& c : testing::chunk_cases()) {
    ChunkBox tile = c.box;
    const auto size = tile_extents(c.rules.tile);
    for (std::size_t a = 0; a < 3; ++a) tile.extents[a] = std::min<std::uint64_t>(tile.extents[a], size[a]);
    std::uint32_t bytes[kPredictors];
    cpu.kernels.estimate(c.rules, c.elements.data(), tile, bytes, cpu.scratch.get());
    ASSERT_EQ(estimate_on_lanes(c, tile), std::to_array(bytes)) << c.name;
    std::vector<std::uint8_t> encoded(max_lorenzo_chunk_bytes(c.rules.element, 1));
    ASSERT_EQ(lone_tile_bytes(quern::testing::encode_tile_on_lanes(c.rules, c.elements.data(), tile)),
              cpu.kernels.encode(c.rules, c.elements.data(), tile, encoded.data(), cpu.scratch.get()))
        << c.name;
  }
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
  EXPECT_EQ(EmulatorState::instance().races(), 0u);
}

TEST(LaneChunk, EveryBitOfRaggedChunksWithExceptionsFlipped_CheckedAsOnTheCpu) {
  EmulatorState::instance().reset(testing::kChunkSeed);
  Cpu cpu;
  for (const Element element : {Element::f16, Element::f32, Element::f64})
    for (const TileShape tile : {TileShape::line, TileShape::plane, TileShape::block})
      for (const QuantizerKind kind : {QuantizerKind::absolute, QuantizerKind::pointwise}) {
        ChunkCase c;
        c.rules = testing::make_case_rules(element, kind, tile);
        c.box = tile == TileShape::line    ? ChunkBox{{1, 1, 40}, {40, 40}}
                : tile == TileShape::plane ? ChunkBox{{1, 3, 9}, {27, 9}}
                                           : ChunkBox{{2, 3, 9}, {27, 9}};
        const std::size_t count = c.box.extents[0] * c.box.extents[1] * c.box.extents[2];
        const std::size_t size = element_bytes(element);
        c.elements.resize(count * size);
        for (std::size_t i = 0; i < count; ++i) {
          const double value = (i % 3 == 0 ? -1 : 1) * (3 + 0.1 * static_cast<double>(i));
          const std::uint64_t bits = testing::pattern_of(element, i == 7 || i == 20 ? NAN : value);
          std::memcpy(c.elements.data() + i * size, &bits, size);
        }
        SCOPED_TRACE("element " + std::to_string(static_cast<int>(element)) + " tile " +
                     std::to_string(static_cast<int>(tile)) + " quantizer " + std::to_string(static_cast<int>(kind)));
        std::vector<std::uint8_t> bytes(max_lorenzo_chunk_bytes(element, c.tiles()));
        bytes.resize(cpu.kernels.encode(c.rules, c.elements.data(), c.box, bytes.data(), cpu.scratch.get()));
        for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
          auto damaged = bytes;
          damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
          ASSERT_NO_FATAL_FAILURE(compare_decoding(c, cpu, damaged)) << "bit " << bit;
        }
      }
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
  EXPECT_EQ(EmulatorState::instance().races(), 0u);
}

}  // namespace
}  // namespace quern::kernels

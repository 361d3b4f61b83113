// The lorenzo kernels of kernels/lorenzo/cuda on the simulator: bytes and elements as on the CPU, whatever order blocks
// and threads run in; nothing but the caller's memory is used, and exactly as much as was said.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/mask/scan.h"
#include "tests/unit_cuda/cuda_grid.h"

namespace quern::kernels {
namespace {

using testing::Content;
using testing::CudaGrid;
using testing::DeviceBuffer;
using testing::DeviceGrid;
using testing::EncodedGrid;
using testing::GridCase;
using testing::Stream;

class LorenzoCuda : public quern::testing::CudaTest {
 protected:
  testing::CpuGrid cpu_;

  static simt::Options seeded(std::uint64_t seed, unsigned resident_blocks = 0) {
    simt::Options options;
    options.seed = seed;
    options.resident_blocks = resident_blocks;
    return options;
  }
  /// A few blocks with every kind of tile in them.
  static GridCase sample(Element element = Element::f32, QuantizerKind kind = QuantizerKind::absolute,
                         TileShape tile = TileShape::plane) {
    std::mt19937_64 random(testing::kChunkSeed);
    const CudaGrid grid = tile == TileShape::line    ? CudaGrid{{1, 3, 3000}, {1, 1, 2048}}
                          : tile == TileShape::plane ? CudaGrid{{2, 70, 75}, {1, 32, 64}}
                                                     : CudaGrid{{5, 17, 70}, {4, 8, 64}};
    return testing::make_grid_case(element, kind, tile, grid, Content::specials, random);
  }

  void compare(const GridCase& c) {
    const EncodedGrid expected = cpu_.encode(c);
    const EncodedGrid encoded = testing::encode_to_slots(c);
    ASSERT_EQ(encoded.offsets, expected.offsets);
    ASSERT_EQ(encoded.raw, expected.raw);
    ASSERT_EQ(encoded.bytes, expected.bytes);
    std::vector<std::uint8_t> wanted(c.elements.size(), 0xa5), got = wanted;
    std::vector<std::uint32_t> wanted_damage, damage;
    cpu_.decode(c, expected, wanted, wanted_damage);
    testing::decode_on_device(c, expected, got, damage);
    ASSERT_EQ(damage, wanted_damage);
    ASSERT_EQ(got, wanted);
    ASSERT_EQ(simt::failure(), "");
  }
};

TEST_F(LorenzoCuda, EveryCase_BytesAndElementsAsOnTheCpu) {
  std::uint64_t seed = 0;
  testing::for_each_grid_case([&](const GridCase& c) {
    if (HasFatalFailure()) return;
    simt::reset(seeded(++seed));
    SCOPED_TRACE(c.name + " seed " + std::to_string(seed));
    compare(c);
  });
}

TEST_F(LorenzoCuda, EverySeedAndResidency_SameBytesAndElements) {
  for (const TileShape tile : testing::kAllTiles)
    for (const Element element : {Element::u8, Element::f16, Element::f32, Element::f64}) {
      const QuantizerKind kind = element == Element::u8 ? QuantizerKind::absolute : QuantizerKind::pointwise;
      for (const unsigned resident : {1u, 2u, 5u, 32u})
        for (std::uint64_t seed = 1; seed <= 2; ++seed) {
          simt::reset(seeded(seed, resident));
          const GridCase c = sample(element, kind, tile);
          SCOPED_TRACE(c.name + " seed " + std::to_string(seed) + " resident " + std::to_string(resident));
          compare(c);
          if (HasFatalFailure()) return;
        }
    }
}

TEST_F(LorenzoCuda, MostTilesAChunkMayHave_BytesAndElementsAsOnTheCpu) {
  std::mt19937_64 random(testing::kChunkSeed);
  for (const Element element : {Element::i8, Element::bf16, Element::u32, Element::f64})
    for (const TileShape tile : testing::kAllTiles) {
      const std::uint64_t tiles = element_bytes(element) == 1 ? 16 : element_bytes(element) == 8 ? 4 : 8;
      CudaGrid grid;
      grid.chunk = tile == TileShape::line    ? std::array<std::uint64_t, 3>{1, 1, 1024 * tiles}
                   : tile == TileShape::plane ? std::array<std::uint64_t, 3>{1, 16 * tiles, 64}
                                              : std::array<std::uint64_t, 3>{4, 4 * tiles, 64};
      grid.extents = {grid.chunk[0], grid.chunk[1], grid.chunk[2] + 1};
      const GridCase c = testing::make_grid_case(element, QuantizerKind::absolute, tile, grid, Content::smooth, random);
      SCOPED_TRACE(c.name);
      simt::reset(seeded(tiles));
      compare(c);
      if (HasFatalFailure()) return;
      GridCase larger = c;
      larger.grid.chunk[tile == TileShape::line ? 2 : 1] *= 2;
      DeviceGrid wrong(larger);
      EXPECT_EQ(wrong.queue_slots(nullptr), cudaErrorInvalidValue);
      EXPECT_EQ(wrong.queue_decode(nullptr), cudaErrorInvalidValue);
    }
}

TEST_F(LorenzoCuda, Calls_NeitherAllocateNorWait) {
  const GridCase c = sample();
  const EncodedGrid expected = cpu_.encode(c);
  Stream stream;
  DeviceGrid grid(c);
  DeviceBuffer<std::uint8_t> bytes(expected.bytes);
  grid.store(expected, bytes);
  const simt::Counters before = simt::counters();
  ASSERT_EQ(grid.queue_slots(stream), cudaSuccess);
  ASSERT_EQ(grid.queue_decode(stream), cudaSuccess);
  const simt::Counters& after = simt::counters();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.host_allocations, before.host_allocations);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
  EXPECT_EQ(after.queries, before.queries);
  EXPECT_EQ(after.copies, before.copies);
  // Encoding: tiles, sizes, and the chunks that are encoded another way. Decoding: heads, tiles with a job, what is left.
  EXPECT_EQ(after.launches, before.launches + 6);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(grid.encoded().bytes, expected.bytes);
  EXPECT_EQ(grid.damaged(), std::vector<std::uint32_t>(grid.count(), 0));
}

TEST_F(LorenzoCuda, Graph_GivesNewBytesForNewElementsAtEachLaunch) {
  GridCase c = sample();
  Stream stream;
  DeviceGrid grid(c);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(grid.queue_slots(stream), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  for (int round = 0; round < 3; ++round) {
    std::rotate(c.elements.begin(), c.elements.begin() + 1024, c.elements.end());
    const EncodedGrid expected = cpu_.encode(c);
    grid.elements().put(c.elements);
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(grid.encoded().bytes, expected.bytes);
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(LorenzoCuda, Scan_CountsWhatTheSegmentHas) {
  using W = ElementWords<Element::f32>;
  std::mt19937_64 random(testing::kChunkSeed);
  for (const TileShape tile : testing::kAllTiles)
    for (const bool specials : {false, true})
      for (const std::uint64_t fill : {UINT64_C(0), UINT64_C(0x3f800000), UINT64_C(0x40400000)}) {
        // Neighbours are often equal; rows and columns of chunks begin at every phase.
        GridCase c = sample(Element::f32, QuantizerKind::absolute, tile);
        for (std::size_t at = 0; at < c.elements.size(); at += 4) {
          auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(random() % 3));
          if (specials && random() % 500 == 0) bits = random() % 2 == 0 ? 0x80000000u : 0x7fc00000u;
          std::memcpy(c.elements.data() + at, &bits, 4);
        }
        const std::vector<std::uint64_t> fills(fill == 0 ? 0 : 1, fill);
        const auto& n = c.grid.extents;
        const std::vector<std::uint32_t> fill_words(fills.begin(), fills.end());
        const ScanCounts expected = scan_segment<W>(
            {reinterpret_cast<const std::uint32_t*>(c.elements.data()), {n[0], n[1], n[2]}, {n[1] * n[2], n[2]}},
            fill_words);
        DeviceGrid grid(c, fills);
        Stream stream;
        ASSERT_EQ(grid.queue_slots(stream), cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        ScanCounts sum;
        for (const ChunkScan& scan : grid.scans()) {
          sum.equal_pairs += scan.equal_pairs;
          sum.negative_zeros += scan.negative_zeros;
          sum.any_mandatory |= scan.mandatory != 0;
        }
        EXPECT_GT(expected.equal_pairs, 0u);
        EXPECT_EQ(sum.equal_pairs, expected.equal_pairs);
        EXPECT_EQ(sum.negative_zeros, expected.negative_zeros);
        EXPECT_EQ(sum.any_mandatory, expected.any_mandatory);
      }
}

TEST_F(LorenzoCuda, SampleTiles_CostWhatTheCpuSays) {
  const LorenzoKernels& cpu = lorenzo_kernels(best_isa());
  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  const std::unique_ptr<Line[]> scratch(new Line[1 + cpu.encode_scratch_bytes / sizeof(Line)]);
  for (const Element element : {Element::u8, Element::f16, Element::f32, Element::f64})
    for (const TileShape tile : testing::kAllTiles) {
      GridCase c = sample(element, QuantizerKind::absolute, tile);
      const auto size = tile_extents(tile);
      for (std::size_t a = 0; a < 3; ++a) c.grid.chunk[a] = size[a];
      SCOPED_TRACE(c.name);
      DeviceGrid grid(c);
      Stream stream;
      DeviceBuffer<std::uint32_t> costs(grid.count() * kPredictors), bytes(grid.count());
      ASSERT_EQ(lorenzo_estimate_async(grid.chunks(), costs.data(), stream), cudaSuccess);
      ASSERT_EQ(lorenzo_measure_async(grid.chunks(), bytes.data(), stream), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      std::vector<std::uint32_t> wanted_costs, wanted_bytes;
      testing::for_each_chunk(c, [&](std::size_t, std::size_t offset, const ChunkBox& box) {
        std::uint32_t estimates[kPredictors];
        cpu.estimate(c.rules, c.elements.data() + offset, box, estimates, scratch.get());
        wanted_costs.insert(wanted_costs.end(), std::begin(estimates), std::end(estimates));
        std::vector<std::uint8_t> chunk(max_lorenzo_chunk_bytes(element, 1));
        wanted_bytes.push_back(static_cast<std::uint32_t>(
            cpu.encode(c.rules, c.elements.data() + offset, box, chunk.data(), scratch.get())));
      });
      EXPECT_EQ(costs.get(), wanted_costs);
      EXPECT_EQ(bytes.get(), wanted_bytes);
    }
}

TEST_F(LorenzoCuda, NothingToDo_NothingLaunched) {
  const GridCase c = sample();
  DeviceGrid grid(c);
  LorenzoChunks none = grid.chunks();
  none.items = 0;
  EXPECT_EQ(lorenzo_encode_async(none, {}, {}, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(lorenzo_decode_async(none, nullptr, nullptr, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(simt::counters().launches, 0u);
}

TEST_F(LorenzoCuda, LaunchThatFails_IsReturned) {
  const GridCase c = sample();
  DeviceGrid grid(c);
  Stream stream;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(grid.queue_slots(stream), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

}  // namespace
}  // namespace quern::kernels

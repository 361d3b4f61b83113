// The lorenzo kernels of kernels/cuda on the simulator: bytes and elements as on the CPU, whatever order blocks and
// threads run in; nothing but the caller's memory is used, and exactly as much as was said.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/unit_cuda/cuda_grid.h"

namespace quern::kernels {
namespace {

using testing::Content;
using testing::DeviceBuffer;
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
    const EncodedGrid encoded = testing::encode_on_device(c, expected.bytes.size());
    ASSERT_EQ(encoded.offsets, expected.offsets);
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
      std::size_t bytes = 0;
      EXPECT_EQ(lorenzo_encode_workspace(larger.rules, larger.grid, bytes), cudaErrorInvalidValue);
    }
}

TEST_F(LorenzoCuda, ThousandsOfChunks_OffsetsAreSummedAcrossWarpsAndPasses) {
  std::mt19937_64 random(testing::kChunkSeed);
  // The sum takes 128 chunks a warp and 4096 a pass; chunks differ in size.
  for (const std::uint64_t chunks : {129, 1000, 4099}) {
    const CudaGrid grid{{1, 1, 3 * chunks - 1}, {1, 1, 3}};
    const GridCase c =
        testing::make_grid_case(Element::i16, QuantizerKind::exact, TileShape::line, grid, Content::specials, random);
    SCOPED_TRACE(c.name);
    simt::reset(seeded(chunks));
    const EncodedGrid expected = cpu_.encode(c);
    const EncodedGrid encoded = testing::encode_on_device(c, expected.bytes.size());
    ASSERT_EQ(encoded.offsets, expected.offsets);
    ASSERT_EQ(encoded.bytes, expected.bytes);
  }
}

TEST_F(LorenzoCuda, Calls_NeitherAllocateNorWait) {
  const GridCase c = sample();
  const EncodedGrid expected = cpu_.encode(c);
  Stream stream;
  std::size_t workspace_bytes = 0;
  ASSERT_EQ(lorenzo_encode_workspace(c.rules, c.grid, workspace_bytes), cudaSuccess);
  DeviceBuffer<std::uint8_t> in(c.elements), workspace(workspace_bytes), bytes(expected.bytes.size()),
      out(c.elements.size());
  DeviceBuffer<std::uint64_t> offsets(expected.offsets.size());
  DeviceBuffer<std::uint32_t> damaged(chunk_count(c.grid));
  const simt::Counters before = simt::counters();
  ASSERT_EQ(lorenzo_encode_async(c.rules, c.grid, in.data(), bytes.data(), bytes.count(), offsets.data(),
                                 workspace.data(), workspace_bytes, stream),
            cudaSuccess);
  ASSERT_EQ(lorenzo_decode_async(c.rules, c.grid, bytes.data(), bytes.count(), offsets.data(), out.data(),
                                 damaged.data(), stream),
            cudaSuccess);
  const simt::Counters& after = simt::counters();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.host_allocations, before.host_allocations);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
  EXPECT_EQ(after.queries, before.queries);
  EXPECT_EQ(after.copies, before.copies);
  EXPECT_EQ(after.launches, before.launches + 4);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(bytes.get(), expected.bytes);
  EXPECT_EQ(damaged.get(), std::vector<std::uint32_t>(damaged.count(), 0));
}

TEST_F(LorenzoCuda, WorkspaceOfOneByteLess_IsRefused) {
  const GridCase c = sample();
  std::size_t workspace_bytes = 0;
  ASSERT_EQ(lorenzo_encode_workspace(c.rules, c.grid, workspace_bytes), cudaSuccess);
  DeviceBuffer<std::uint8_t> in(c.elements), workspace(workspace_bytes), out(testing::largest_encoding(c));
  DeviceBuffer<std::uint64_t> offsets(chunk_count(c.grid) + 1);
  EXPECT_EQ(lorenzo_encode_async(c.rules, c.grid, in.data(), out.data(), out.count(), offsets.data(), workspace.data(),
                                 workspace_bytes - 1, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(simt::counters().launches, 0u);
}

TEST_F(LorenzoCuda, Graph_GivesNewBytesForNewElementsAtEachLaunch) {
  GridCase c = sample();
  Stream stream;
  std::size_t workspace_bytes = 0;
  ASSERT_EQ(lorenzo_encode_workspace(c.rules, c.grid, workspace_bytes), cudaSuccess);
  DeviceBuffer<std::uint8_t> in(c.elements.size()), workspace(workspace_bytes), bytes(testing::largest_encoding(c)),
      out(c.elements.size());
  DeviceBuffer<std::uint64_t> offsets(chunk_count(c.grid) + 1);
  DeviceBuffer<std::uint32_t> damaged(chunk_count(c.grid));
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(lorenzo_encode_async(c.rules, c.grid, in.data(), bytes.data(), bytes.count(), offsets.data(),
                                 workspace.data(), workspace_bytes, stream),
            cudaSuccess);
  ASSERT_EQ(lorenzo_decode_async(c.rules, c.grid, bytes.data(), bytes.count(), offsets.data(), out.data(),
                                 damaged.data(), stream),
            cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  for (int round = 0; round < 3; ++round) {
    std::rotate(c.elements.begin(), c.elements.begin() + 1024, c.elements.end());
    const EncodedGrid expected = cpu_.encode(c);
    std::vector<std::uint8_t> elements(c.elements.size());
    std::vector<std::uint32_t> damage;
    cpu_.decode(c, expected, elements, damage);
    in.put(c.elements);
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(offsets.get(), expected.offsets);
    EXPECT_EQ(bytes.get(expected.bytes.size()), expected.bytes);
    EXPECT_EQ(damaged.get(), damage);
    EXPECT_EQ(out.get(), elements);
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(LorenzoCuda, CapacityThatIsTooSmall_KeepsWholeChunksAndTellsTheTotal) {
  const GridCase c = sample();
  const EncodedGrid expected = cpu_.encode(c);
  const std::size_t chunks = expected.offsets.size() - 1;
  for (const std::uint64_t capacity :
       {expected.offsets[1] - 1, expected.offsets[1], expected.offsets[chunks / 2] + 3, expected.offsets[chunks] - 1}) {
    simt::reset(seeded(capacity));
    const EncodedGrid encoded = testing::encode_on_device(c, capacity);
    EXPECT_EQ(encoded.offsets, expected.offsets);
    const auto fitting = std::upper_bound(expected.offsets.begin(), expected.offsets.end(), capacity) - 1;
    const auto bytes = static_cast<std::ptrdiff_t>(*fitting);
    EXPECT_TRUE(std::equal(encoded.bytes.begin(), encoded.bytes.begin() + bytes, expected.bytes.begin()));
  }
}

TEST_F(LorenzoCuda, ArrayOfNothing_HasOneOffsetAndNothingToDecode) {
  GridCase c = sample();
  c.grid.extents[1] = 0;
  DeviceBuffer<std::uint64_t> offsets(std::vector<std::uint64_t>{77});
  std::size_t workspace_bytes = 1;
  ASSERT_EQ(lorenzo_encode_workspace(c.rules, c.grid, workspace_bytes), cudaSuccess);
  EXPECT_EQ(workspace_bytes, 0u);
  EXPECT_EQ(lorenzo_encode_async(c.rules, c.grid, nullptr, nullptr, 0, offsets.data(), nullptr, 0, nullptr),
            cudaSuccess);
  EXPECT_EQ(lorenzo_decode_async(c.rules, c.grid, nullptr, 0, offsets.data(), nullptr, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(offsets.get(), std::vector<std::uint64_t>{0});
  EXPECT_EQ(simt::counters().launches, 0u);
}

TEST_F(LorenzoCuda, LaunchThatFails_IsReturned) {
  const GridCase c = sample();
  std::size_t workspace_bytes = 0;
  ASSERT_EQ(lorenzo_encode_workspace(c.rules, c.grid, workspace_bytes), cudaSuccess);
  DeviceBuffer<std::uint8_t> in(c.elements), workspace(workspace_bytes), out(testing::largest_encoding(c));
  DeviceBuffer<std::uint64_t> offsets(chunk_count(c.grid) + 1);
  Stream stream;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(lorenzo_encode_async(c.rules, c.grid, in.data(), out.data(), out.count(), offsets.data(), workspace.data(),
                                 workspace_bytes, stream),
            cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

}  // namespace
}  // namespace quern::kernels

// Chunks that are encoded in tiles and joined, on the simulator: bytes as on the CPU, for every kind of codes, and which
// chunks are left to the other encoder.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/unit_cuda/cuda_grid.h"
#include "tests/unit_kernels/staged_cases.h"

namespace quern::kernels {
namespace {

using testing::Codes;
using testing::CudaGrid;
using testing::DeviceGrid;
using testing::EncodedGrid;
using testing::GridCase;
using testing::Stream;

class LorenzoStaged : public quern::testing::CudaTest {
 protected:
  testing::CpuGrid cpu_;
  std::mt19937_64 random_{testing::kChunkSeed};

  GridCase make_case(Codes codes, const CudaGrid& grid, TileShape tile, std::uint32_t promised, std::int64_t base) {
    GridCase c;
    c.name = "tile " + std::to_string(static_cast<int>(tile)) + " codes " + std::to_string(static_cast<int>(codes)) +
             " promised " + std::to_string(promised) + " base " + std::to_string(base);
    c.rules = testing::staged_rules(tile, promised);
    testing::choose_any_candidates(c.rules, random_);
    c.grid = grid;
    c.elements.resize(4 * grid.extents[0] * grid.extents[1] * grid.extents[2]);
    for (std::size_t i = 0; i < c.elements.size() / 4; ++i) {
      const float value = testing::staged_value(codes, i, c.rules.params.step, base, random_);
      std::memcpy(c.elements.data() + 4 * i, &value, 4);
    }
    return c;
  }

  /// Chunks in parts.
  std::size_t compare(const GridCase& c) {
    const EncodedGrid expected = cpu_.encode(c);
    DeviceGrid grid(c);
    Stream stream;
    EXPECT_EQ(grid.queue_slots(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << simt::failure();
    const std::size_t parts = grid.chunks_in_parts();
    const EncodedGrid encoded = grid.encoded();
    EXPECT_EQ(encoded.offsets, expected.offsets);
    EXPECT_EQ(encoded.raw, expected.raw);
    EXPECT_TRUE(encoded.bytes == expected.bytes);
    EXPECT_EQ(simt::failure(), "");
    return parts;
  }
};

/// Chunks of eight whole tiles.
CudaGrid whole_grid(TileShape tile) {
  switch (tile) {
    case TileShape::line: return {{1, 1, 2 * 8192}, {1, 1, 8192}};
    case TileShape::plane: return {{1, 128, 128}, {1, 128, 64}};
    case TileShape::block: break;
  }
  return {{8, 16, 128}, {8, 16, 64}};
}

TEST_F(LorenzoStaged, EveryKindOfCodes_BytesAsOnTheCpu) {
  std::uint64_t seed = 0;
  for (const TileShape tile : testing::kAllTiles)
    for (const Codes codes : testing::kAllCodes)
      for (const std::uint32_t promised : {0u, 100u, 20000u}) {
        const GridCase c = make_case(codes, whole_grid(tile), tile, promised, promised == 100 ? -40 : 32768);
        simt::Options options;
        options.seed = ++seed;
        simt::reset(options);
        SCOPED_TRACE(c.name + " seed " + std::to_string(seed));
        const std::size_t parts = compare(c);
        if (codes == Codes::calm || codes == Codes::outliers || codes == Codes::not_packed) {
          EXPECT_EQ(parts, 2u);
        }
        if (HasFailure()) return;
      }
}

TEST_F(LorenzoStaged, RowsAtAnyAddress_BytesAsOnTheCpu) {
  for (const TileShape tile : {TileShape::plane, TileShape::block})
    for (const std::uint64_t width : {193u, 194u, 196u}) {
      CudaGrid grid = whole_grid(tile);
      grid.extents[2] = width;
      const GridCase c = make_case(Codes::noise8, grid, tile, 100, 3);
      SCOPED_TRACE(c.name + " width " + std::to_string(width));
      EXPECT_EQ(compare(c), 3u);  // the chunk that is cut off is encoded another way
    }
}

TEST_F(LorenzoStaged, LastChunkOfFewerTiles_BytesAsOnTheCpu) {
  for (const std::uint64_t tiles : {1u, 3u, 7u, 9u, 13u}) {
    const GridCase c =
        make_case(Codes::smooth, CudaGrid{{1, 1, 1024 * tiles}, {1, 1, 8192}}, TileShape::line, 20000, 0);
    EXPECT_EQ(compare(c), (tiles + 7) / 8);
  }
}

TEST_F(LorenzoStaged, MoreChunksThanWarpsAtATime_BytesAsOnTheCpu) {
  for (const unsigned processors : {1u, 3u}) {
    simt::Options options;
    options.multiprocessors = processors;
    simt::reset(options);
    GridCase c = make_case(Codes::calm, CudaGrid{{8, 16, 64 * 37}, {8, 16, 64}}, TileShape::block, 100, 9);
    const float refused = -0.0f;
    std::memcpy(c.elements.data() + 4 * 64 * 5, &refused, 4);
    EXPECT_EQ(compare(c), 36u);
  }
}

/// Two chunks side by side of as many whole tiles as chunks of the element may have; `beyond`: elements that cut a third.
CudaGrid widest_grid(Element element, TileShape tile, std::uint64_t beyond) {
  const auto e = tile_extents(tile);
  const std::uint64_t along_x = std::uint64_t{e[2]} * max_chunk_tiles(element_bytes(element));
  return {{e[0], e[1], 2 * along_x + beyond}, {e[0], e[1], along_x}};
}

TEST_F(LorenzoStaged, EveryElementType_BytesAsOnTheCpu) {
  unsigned turn = 0;
  for (const Element element : testing::kAllElements)
    for (const QuantizerKind kind : {QuantizerKind::absolute, QuantizerKind::exact}) {
      if (element == Element::f32 || !lorenzo_has_parts(element, kind)) continue;
      for (const testing::Content content :
           {testing::Content::smooth, testing::Content::constant, testing::Content::specials}) {
        const TileShape tile = testing::kAllTiles[turn++ % 3];
        // An odd width: rows begin at any address.
        const std::uint64_t beyond = tile != TileShape::line && turn % 2 == 0 ? 1 : 0;
        const GridCase c =
            testing::make_grid_case(element, kind, tile, widest_grid(element, tile, beyond), content, random_);
        SCOPED_TRACE(c.name);
        const std::size_t parts = compare(c);
        if (content != testing::Content::specials) {
          EXPECT_EQ(parts, 2u);
        }
        if (HasFailure()) return;
      }
    }
}

}  // namespace
}  // namespace quern::kernels

// Geometry: chunks cover the grid once, numbers run on, bands are runs of elements.
#include <gtest/gtest.h>

#include <vector>

#include "libcompress/format/grid/layout.h"
#include "libcompress/format/grid/limits.h"

namespace quern {
namespace {

const std::vector<ChunkGrid>& grids() {
  static const std::vector<ChunkGrid> all{
      {{1, 1, 1}, {1, 1, 1}},    {{1, 1, 1000}, {1, 1, 7}}, {{1, 100, 30}, {1, 3, 4}}, {{20, 30, 40}, {4, 4, 4}},
      {{9, 70, 70}, {2, 1, 70}}, {{5, 6, 200}, {2, 2, 3}},  {{64, 64, 1}, {1, 64, 1}}, {{3, 65, 64}, {1, 1, 64}},
      {{130, 8, 8}, {1, 1, 8}},  {{1, 1, 64}, {1, 1, 1}},   {{1, 65, 1}, {1, 1, 1}},   {{100, 1, 1}, {3, 1, 1}},
      {{2, 64, 65}, {1, 1, 1}},  {{7, 5, 3}, {7, 5, 3}},
  };
  return all;
}

// Device code has nothing but constant evaluation's means.
constexpr SegmentLayout kConstant({{20, 30, 40}, {4, 4, 4}}, DType::f64);
static_assert(kConstant.chunks() == 400 && kConstant.segments() == 10);
static_assert(kConstant.segment_box(9).begin == Index3{16, 24, 0} && kConstant.first_chunk(9) == 380);
static_assert(kConstant.chunk_box(0, 11).begin == Index3{0, 4, 4});
static_assert(kConstant.place_of({0, 5, 6}).k == 11);
static_assert(kConstant.full_chunk_bytes() == 512);
static_assert(kConstant.band_begin(kConstant.bands()) == 20 * 30 * 40);

TEST(SegmentLayout, Chunks_CoverTheGridOnceAndAreNumberedInRasterOrder) {
  for (const ChunkGrid& grid : grids()) {
    const SegmentLayout layout(grid, DType::f32);
    std::vector<int> covered(static_cast<std::size_t>(grid.extents[0] * grid.extents[1] * grid.extents[2]));
    std::uint64_t number = 0;
    for (std::uint64_t s = 0; s < layout.segments(); ++s) {
      ASSERT_LE(layout.segment_chunks(s), kMaxSegmentChunks);
      ASSERT_EQ(layout.first_chunk(s), number);
      std::uint64_t elems = 0;
      for (std::uint64_t k = 0; k < layout.segment_chunks(s); ++k, ++number) {
        const GridBox box = layout.chunk_box(s, k);
        elems += box.elems();
        // Raster order of the whole chunk grid.
        const auto counts = grid.counts();
        ASSERT_EQ((box.begin[0] / grid.chunk[0] * counts[1] + box.begin[1] / grid.chunk[1]) * counts[2] +
                      box.begin[2] / grid.chunk[2],
                  number);
        for (std::uint64_t i = 0; i < box.extents[0]; ++i)
          for (std::uint64_t j = 0; j < box.extents[1]; ++j)
            for (std::uint64_t l = 0; l < box.extents[2]; ++l) {
              const Index3 at{box.begin[0] + i, box.begin[1] + j, box.begin[2] + l};
              ++covered[layout.flat(at)];
              const auto place = layout.place_of(at);
              ASSERT_EQ(place.segment, s);
              ASSERT_EQ(place.k, k);
            }
      }
      ASSERT_EQ(elems, layout.segment_box(s).elems());
      ASSERT_LE(elems, layout.max_segment_elems());
    }
    ASSERT_EQ(number, layout.chunks());
    for (const int times : covered) ASSERT_EQ(times, 1);
  }
}

TEST(SegmentLayout, Bands_AreConsecutiveElementsInWholeSegments) {
  for (const ChunkGrid& grid : grids()) {
    const SegmentLayout layout(grid, DType::u8);
    ASSERT_EQ(layout.bands() * layout.band_segments(), layout.segments());
    ASSERT_EQ(layout.band_begin(0), 0u);
    ASSERT_EQ(layout.band_begin(layout.bands()), grid.extents[0] * grid.extents[1] * grid.extents[2]);
    for (std::uint64_t b = 0; b < layout.bands(); ++b) {
      std::uint64_t elems = 0;
      for (std::uint64_t s = b * layout.band_segments(); s < (b + 1) * layout.band_segments(); ++s) {
        const GridBox box = layout.segment_box(s);
        elems += box.elems();
        ASSERT_GE(layout.flat(box.begin), layout.band_begin(b));
      }
      ASSERT_EQ(elems, layout.band_begin(b + 1) - layout.band_begin(b));
    }
  }
}

TEST(SegmentLayout, EmptyArrays_HaveNoSegments) {
  for (const ChunkGrid& grid :
       {ChunkGrid{{0, 1, 1}, {1, 1, 1}}, ChunkGrid{{1, 1, 0}, {1, 1, 1}}, ChunkGrid{{5, 0, 7}, {2, 1, 2}}}) {
    const SegmentLayout layout(grid, DType::f32);
    EXPECT_EQ(layout.segments(), 0u);
    EXPECT_EQ(layout.chunks(), 0u);
    EXPECT_EQ(layout.max_segment_elems(), 0u);
  }
}

TEST(SegmentLayout, FullSegments_HoldAsManyChunksAsTheRuleSays) {
  const auto first = [](const ChunkGrid& grid) { return SegmentLayout(grid, DType::f32).segment_chunks(0); };
  EXPECT_EQ(first({{20, 30, 40}, {4, 4, 4}}), 60u) << "six rows of ten chunks";
  EXPECT_EQ(first({{40, 12, 20}, {4, 4, 4}}), 60u) << "four slabs of fifteen chunks";
  EXPECT_EQ(first({{1, 1, 1000}, {1, 1, 7}}), 64u);
}

}  // namespace
}  // namespace quern

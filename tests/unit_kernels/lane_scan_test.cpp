// The scan of tiles against the scan of the segment that they make up.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/lorenzo/warp/segment_scan.h"
#include "tests/emulator/lane_emulator.h"

namespace quern::kernels {
namespace {

using X = quern::testing::LaneEmulator;

/// A segment of few values, so that neighbours are often equal, with specials here and there.
template <class W>
std::vector<typename W::Word> make_cells(std::size_t count, std::mt19937_64& random) {
  using Word = typename W::Word;
  std::vector<Word> cells(count);
  for (Word& cell : cells) {
    cell = static_cast<Word>(random() % 3);
    if (W::kFloat && random() % 50 == 0) cell = W::kSign;
    if (W::kFloat && random() % 4000 == 0) cell = static_cast<Word>(W::kInfinity + random() % 2);
  }
  return cells;
}

template <class W, TileShape S>
void compare(const SegmentExtents& extents, std::uint64_t fill, std::mt19937_64& random) {
  using Word = typename W::Word;
  const auto cells = make_cells<W>(extents[0] * extents[1] * extents[2], random);
  const ChunkBox box{{extents[0], extents[1], extents[2]}, {extents[1] * extents[2], extents[2]}};
  const LaneFills fills{&fill, fill == 0 ? 0u : 1u};
  const auto counts = tile_counts(box, S);
  const auto size = tile_extents(S);
  LaneScan sum;
  for (std::uint32_t t = 0; t < counts[0] * counts[1] * counts[2]; ++t) {
    const LanePlace place = lane_place<S>(box, t);
    const auto y = t / counts[2] % counts[1] * size[1];
    const auto x = t % counts[2] * size[2];
    scan_pairs<X, S>(cells.data() + place.offset, place, static_cast<std::uint32_t>((y + x / 32) % 8), sum);
    scan_values<X, S>(W::kElement, cells.data() + place.offset, place, fills, sum);
  }
  const FillWords<W> words(fill);
  const ScanCounts expected = scan_segment<W>({cells.data(), extents, box.strides},
                                              std::span<const Word>(words.words, fill == 0 ? 0u : words.count));
  EXPECT_EQ(sum.equal_pairs, expected.equal_pairs);
  EXPECT_EQ(sum.negative_zeros, expected.negative_zeros);
  EXPECT_EQ(sum.any_mandatory, expected.any_mandatory);
}

template <Element kElement>
void compare_all() {
  using W = ElementWords<kElement>;
  quern::testing::EmulatorState::instance().reset(7);
  std::mt19937_64 random(static_cast<unsigned>(kElement));
  for (const std::uint64_t fill : {UINT64_C(0), UINT64_C(1), UINT64_C(77)}) {
    for (const std::uint64_t n : {1u, 31u, 33u, 300u, 1024u, 5000u})
      compare<W, TileShape::line>({1, 1, n}, fill, random);
    for (const auto& e : {SegmentExtents{1, 1, 1}, SegmentExtents{1, 37, 65}, SegmentExtents{1, 128, 300}})
      compare<W, TileShape::plane>(e, fill, random);
    for (const auto& e : {SegmentExtents{3, 9, 33}, SegmentExtents{4, 16, 320}, SegmentExtents{9, 7, 1}})
      compare<W, TileShape::block>(e, fill, random);
  }
  EXPECT_EQ(quern::testing::EmulatorState::instance().poison_reads(), 0u);
}

TEST(LaneScan, Float16_AsTheSegment) { compare_all<Element::f16>(); }
TEST(LaneScan, Bfloat16_AsTheSegment) { compare_all<Element::bf16>(); }
TEST(LaneScan, Float32_AsTheSegment) { compare_all<Element::f32>(); }
TEST(LaneScan, Float64_AsTheSegment) { compare_all<Element::f64>(); }
TEST(LaneScan, Int8_AsTheSegment) { compare_all<Element::i8>(); }
TEST(LaneScan, UInt16_AsTheSegment) { compare_all<Element::u16>(); }
TEST(LaneScan, Int64_AsTheSegment) { compare_all<Element::i64>(); }

}  // namespace
}  // namespace quern::kernels

// One fast pass over a segment: is there anything special, and are many neighbours equal?
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/mask/segment.h"
#include "kernels/mask/words.h"

namespace quern::kernels {

/// What the scan found.
struct ScanCounts {
  bool any_mandatory = false;  ///< a non-finite value or a declared fill value
  std::uint64_t negative_zeros = 0;
  std::uint64_t equal_pairs = 0;  ///< among those that are looked at, below
};

/// Pairs of neighbours are looked at within pieces of 32 cells of a row (x from a multiple of 32 on), and in every
/// eighth piece: where (y + x / 32) is a multiple of 8, for row y of its plane. Whoever reads an array in runs of 32
/// cells can count them, however the segment is cut into such runs, and every region of 32 x 8 cells has one.
inline constexpr std::uint64_t kPairPiece = 32;
inline constexpr std::uint64_t kPairPieceEvery = 8;
/// The first piece of row y that is looked at.
[[gnu::always_inline]] constexpr std::uint64_t first_pair_piece(std::uint64_t y) { return (0 - y) % kPairPieceEvery; }
/// Whether the piece from x on is looked at.
[[gnu::always_inline]] constexpr bool is_pair_piece(std::uint32_t y, std::uint32_t x) {
  return (y + x / kPairPiece) % kPairPieceEvery == 0;
}

/// Bytes of memory that processors fetch together.
inline constexpr std::uint64_t kFetchedBytes = 64;

/// The same for a segment on a device, where counts come from many warps.
struct SegmentScan {
  std::uint32_t mandatory = 0;  ///< not 0: any_mandatory
  std::uint32_t negative_zeros = 0;
  std::uint32_t equal_pairs = 0;

  constexpr ScanCounts counts() const { return {mandatory != 0, negative_zeros, equal_pairs}; }
};

/// Elements of one pass: they stay in the first-level cache, and counts of them fit a word.
template <class W>
inline constexpr std::uint64_t kScanPiece = W::kBytes == 1 ? 128 : 4096;

/// What `n` consecutive cells, at most kScanPiece, add to everything but the pairs. No branches and counters as wide as
/// the elements: compilers make vector code of it for any instruction set.
template <class W>
void scan_piece(const typename W::Word* p, std::uint64_t n, std::span<const typename W::Word> fills,
                ScanCounts& counts) {
  using Word = typename W::Word;
  if constexpr (W::kFloat) {
    // The sum reaches the sign bit from infinity on.
    constexpr auto kToSign = static_cast<Word>(W::kSign - W::kInfinity);
    Word sums = 0, negative = 0;
    for (std::uint64_t x = 0; x < n; ++x) {
      sums |= static_cast<Word>((p[x] & W::kMagnitude) + kToSign);
      negative = static_cast<Word>(negative + (p[x] == W::kSign));
    }
    counts.any_mandatory |= (sums & W::kSign) != 0;
    counts.negative_zeros += negative;
  }
  for (const Word fill : fills) {
    Word found = 0;
    for (std::uint64_t x = 0; x < n; ++x) found |= static_cast<Word>(p[x] == fill);
    counts.any_mandatory |= found != 0;
  }
}

/// Equal pairs in a run of `n` cells.
template <class Word>
[[gnu::always_inline]] constexpr std::uint64_t equal_pairs(const Word* p, std::uint64_t n) {
  Word equal = 0;
  for (std::uint64_t x = 0; x + 1 < n; ++x) equal = static_cast<Word>(equal + (p[x] == p[x + 1]));
  return equal;
}

/// Cells that are all known to be `ordinary` are only looked at in pairs.
template <class W>
ScanCounts scan_segment(const SegmentBox<const typename W::Word>& box, std::span<const typename W::Word> fills,
                        bool ordinary = false) {
  using Word = typename W::Word;
  const std::uint64_t cols = box.cols();
  ScanCounts counts;
  std::uint64_t y = 0;
  for_rows(box, [&](const Word* p, std::uint64_t) {
    if (!ordinary && (W::kFloat || !fills.empty())) {
      for (std::uint64_t x = 0; x < cols; x += kScanPiece<W>) {
        scan_piece<W>(p + x, std::min(kScanPiece<W>, cols - x), fills, counts);
      }
    }
    // The same pieces of a row to come: processors do not foresee so few of a row.
    const bool fetch = ordinary && y + kPairPieceEvery < box.extents[1];
    std::uint64_t x = kPairPiece * first_pair_piece(y);
    for (; x + kPairPiece <= cols; x += kPairPiece * kPairPieceEvery) {
      counts.equal_pairs += equal_pairs(p + x, kPairPiece);
      if (!fetch) continue;
      const auto* const ahead = reinterpret_cast<const unsigned char*>(p + x + kPairPieceEvery * box.strides[1]);
      for (std::uint64_t at = 0; at < kPairPiece * sizeof(Word); at += kFetchedBytes) __builtin_prefetch(ahead + at);
    }
    if (x < cols) counts.equal_pairs += equal_pairs(p + x, cols - x);
    y = y + 1 == box.extents[1] ? 0 : y + 1;
  });
  return counts;
}

}  // namespace quern::kernels

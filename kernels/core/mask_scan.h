// One fast pass over a segment: is there anything special, and how many neighbours are equal?
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/core/mask_segment.h"
#include "kernels/core/mask_words.h"

namespace quern::kernels {

/// What the scan found. Neighbours are consecutive cells in C order of the box.
struct ScanCounts {
  bool any_mandatory = false;  ///< a non-finite value or a declared fill value
  std::uint64_t negative_zeros = 0;
  std::uint64_t equal_neighbours = 0;
};

/// Elements of one pass: they stay in the first-level cache, and counts of them fit a word.
template <class W>
inline constexpr std::uint64_t kScanPiece = W::kBytes == 1 ? 128 : 4096;

/// Counts within `n` consecutive cells, at most kScanPiece. No branches and counters as wide as the elements: compilers
/// make vector code of it for any instruction set.
template <class W>
void scan_piece(const typename W::Word* p, std::uint64_t n, std::span<const typename W::Word> fills,
                ScanCounts& counts) {
  using Word = typename W::Word;
  Word negative = 0, equal = 0;
  if constexpr (W::kFloat) {
    // The sum reaches the sign bit from infinity on.
    constexpr auto kToSign = static_cast<Word>(W::kSign - W::kInfinity);
    Word sums = 0;
    for (std::uint64_t x = 0; x + 1 < n; ++x) {
      sums |= static_cast<Word>((p[x] & W::kMagnitude) + kToSign);
      negative = static_cast<Word>(negative + (p[x] == W::kSign));
      equal = static_cast<Word>(equal + (p[x] == p[x + 1]));
    }
    sums |= static_cast<Word>((p[n - 1] & W::kMagnitude) + kToSign);
    negative = static_cast<Word>(negative + (p[n - 1] == W::kSign));
    counts.any_mandatory |= (sums & W::kSign) != 0;
  } else {
    for (std::uint64_t x = 0; x + 1 < n; ++x) equal = static_cast<Word>(equal + (p[x] == p[x + 1]));
  }
  for (const Word fill : fills) {
    Word found = 0;
    for (std::uint64_t x = 0; x < n; ++x) found |= static_cast<Word>(p[x] == fill);
    counts.any_mandatory |= found != 0;
  }
  counts.negative_zeros += negative;
  counts.equal_neighbours += equal;
}

template <class W>
ScanCounts scan_segment(const SegmentBox<const typename W::Word>& box, std::span<const typename W::Word> fills) {
  using Word = typename W::Word;
  ScanCounts counts;
  const Word* last = nullptr;
  for_rows(box, [&](const Word* p, std::uint64_t) {
    for (std::uint64_t x = 0; x < box.cols(); x += kScanPiece<W>) {
      const std::uint64_t n = std::min(kScanPiece<W>, box.cols() - x);
      if (last != nullptr && *last == p[x]) ++counts.equal_neighbours;
      scan_piece<W>(p + x, n, fills, counts);
      last = p + x + n - 1;
    }
  });
  return counts;
}

}  // namespace quern::kernels

// One fast pass over a segment: is there anything special, and how many neighbours are equal?
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>

#include "libcompress/pipeline/mask/words.h"

namespace quern::mask {

/// What the scan found. Neighbours are consecutive cells in C order of the box.
struct ScanCounts {
  bool any_mandatory = false;  ///< a non-finite value or a declared fill value
  std::uint64_t negative_zeros = 0;
  std::uint64_t equal_neighbours = 0;
};

/// Declared fill values as words; both zeros when one of them is declared.
template <class W>
Vector<typename W::Word> fill_words(std::span<const std::uint64_t> fill_bits) {
  Vector<typename W::Word> fills;
  for (const std::uint64_t bits : fill_bits) {
    const auto word = static_cast<typename W::Word>(bits);
    if (W::kFloat && (word & W::kMagnitude) >= W::kInfinity) continue;  // masked anyway
    fills.push_back(word);
    if (W::kFloat && (word & W::kMagnitude) == 0) fills.push_back(static_cast<typename W::Word>(word ^ W::kSign));
  }
  return fills;
}

/// Row pointer of a box.
template <class W>
const typename W::Word* row_of(const ConstBox3& box, std::uint64_t i, std::uint64_t y) {
  return static_cast<const typename W::Word*>(box.data) + i * box.strides[0] + y * box.strides[1];
}

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
ScanCounts scan(const ConstBox3& box, std::span<const typename W::Word> fills) {
  using Word = typename W::Word;
  ScanCounts counts;
  const Word* last = nullptr;
  for (std::uint64_t i = 0; i < box.extents[0]; ++i) {
    for (std::uint64_t y = 0; y < box.extents[1]; ++y) {
      const Word* p = row_of<W>(box, i, y);
      for (std::uint64_t x = 0; x < box.extents[2]; x += kScanPiece<W>) {
        const std::uint64_t n = std::min(kScanPiece<W>, box.extents[2] - x);
        if (last != nullptr && *last == p[x]) ++counts.equal_neighbours;
        scan_piece<W>(p + x, n, fills, counts);
        last = p + x + n - 1;
      }
    }
  }
  return counts;
}

}  // namespace quern::mask

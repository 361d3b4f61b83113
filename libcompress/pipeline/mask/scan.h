// One fast pass over a segment: is there anything special, and how many neighbours are equal?
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <quern/codec.h>

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
std::vector<typename W::Word> fill_words(std::span<const std::uint64_t> fill_bits) {
  std::vector<typename W::Word> fills;
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

template <class W>
ScanCounts scan(const ConstBox3& box, std::span<const typename W::Word> fills) {
  using Word = typename W::Word;
  using Count = std::conditional_t<W::kBytes == 8, std::uint64_t, std::uint32_t>;
  constexpr std::uint64_t kPiece = 4096;  // stays in the first-level cache for one pass a fill value
  ScanCounts counts;
  Word mandatory = 0;
  Word last = 0;
  bool has_last = false;
  const auto piece = [&](const Word* p, std::uint64_t n) {
    Count equal = 0, negative = 0;
    if constexpr (W::kFloat) {
      for (std::uint64_t x = 0; x < n; ++x) {
        mandatory |= static_cast<Word>((p[x] & W::kMagnitude) >= W::kInfinity);
        negative += static_cast<Count>(p[x] == W::kSign);
      }
    }
    for (std::uint64_t x = 0; x + 1 < n; ++x) equal += static_cast<Count>(p[x] == p[x + 1]);
    for (const Word fill : fills) {
      for (std::uint64_t x = 0; x < n; ++x) mandatory |= static_cast<Word>(p[x] == fill);
    }
    if (has_last && last == p[0]) ++equal;
    last = p[n - 1];
    has_last = true;
    counts.negative_zeros += negative;
    counts.equal_neighbours += equal;
  };
  for (std::uint64_t i = 0; i < box.extents[0]; ++i) {
    for (std::uint64_t y = 0; y < box.extents[1]; ++y) {
      const Word* p = row_of<W>(box, i, y);
      for (std::uint64_t x = 0; x < box.extents[2]; x += kPiece) piece(p + x, std::min(kPiece, box.extents[2] - x));
    }
  }
  counts.any_mandatory = mandatory != 0;
  return counts;
}

}  // namespace quern::mask

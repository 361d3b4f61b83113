// The scan of a segment by warps, and what masks are made by. Whoever has an array's cells in runs of 32 anyway may
// count on the way: count_pairs and MandatoryWords do it for one run.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/bits.h"
#include "kernels/mask/find.h"
#include "kernels/mask/scan.h"
#include "kernels/mask/view.h"
#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

/// Declared fill values as words: at most eight, of which each may be a zero of two signs.
inline constexpr unsigned kMaxFillWords = 16;

/// What the masks of an array are made by; the same for all its segments.
struct LaneMaskRules {
  Element element = Element::f32;
  RepeatedRules repeated;
  std::uint64_t fills[kMaxFillWords]{};
  std::uint32_t fill_count = 0;
  bool by_levels = false;  ///< the form that masks are stored in (docs/format-mask.md, section 10)
  MaskViews views;
};

/// Calls f.template operator()<W>() with the words of an element type as wide as Word.
template <class Word, class F>
[[gnu::always_inline]] constexpr void with_words_of_width(Element element, F&& f) {
  with_element_words(element, [&](auto words) {
    using W = decltype(words);
    if constexpr (std::is_same_v<typename W::Word, Word>) f.template operator()<W>();
  });
}

/// All that the decisions need to know of words of that width.
template <class T>
struct WordsOfWidth {
  using Word = T;
  static constexpr Word kSign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
};

/// Whether the bits of a cell must be masked.
template <class Word>
class MandatoryWords {
 public:
  constexpr explicit MandatoryWords(const LaneMaskRules& rules) : rules_(rules) {
    with_words_of_width<Word>(rules.element, [this]<class W>() {
      if constexpr (W::kFloat) finite_from_ = W::kInfinity;
    });
  }
  constexpr bool operator()(Word word) const {
    constexpr auto kMagnitude = static_cast<Word>(~WordsOfWidth<Word>::kSign);
    bool must = finite_from_ != 0 && (word & kMagnitude) >= finite_from_;
    for (std::uint32_t k = 0; k < rules_.fill_count; ++k) must |= word == static_cast<Word>(rules_.fills[k]);
    return must;
  }
  /// -0.0, for types that have it.
  constexpr bool is_minus_zero(Word word) const { return finite_from_ != 0 && word == WordsOfWidth<Word>::kSign; }

 private:
  const LaneMaskRules& rules_;
  Word finite_from_ = 0;  ///< magnitudes from here on are not finite; 0: integers
};

/// The words of a few pieces; zeros where there is no cell.
template <class X, class Cell, class Word>
constexpr void load_words(const LaneSegment<Cell>& segment, const LanePiece (&pieces)[kPiecesAhead],
                          typename X::template vec<Word> (&words)[kPiecesAhead]) {
  X::lanes([&](auto lane) {
    unroll<kPiecesAhead>([&](auto j) {
      X::set(words[j], lane, lane < pieces[j].cells ? segment.cells[pieces[j].offset + lane] : Word{0});
    });
  });
}

/// Equal pairs within a run of up to 32 cells of a row, from a multiple of 32 on.
template <class X, class Word>
constexpr std::uint32_t count_pairs(const typename X::template vec<Word>& words, std::uint32_t cells) {
  typename X::template vec<Word> next;
  X::shift_down(next, words);
  return static_cast<std::uint32_t>(
      popcount(ballot_of<X>([&](auto lane) { return lane + 1 < cells && X::get(words, lane) == X::get(next, lane); })));
}

/// What rows [begin, end) of a segment add to its scan; the sum over all rows is that of scan_segment.
template <class X, class Word>
constexpr SegmentScan scan_lanes(const LaneSegment<const Word>& segment, const LaneMaskRules& rules,
                                 std::uint32_t begin, std::uint32_t end) {
  const MandatoryWords<Word> mandatory(rules);
  typename X::template vec<std::uint32_t> must, minus;
  X::lanes([&](auto lane) {
    X::set(must, lane, 0u);
    X::set(minus, lane, 0u);
  });
  SegmentScan scan;
  for_pieces(segment, begin, end, [&](const LanePiece(&pieces)[kPiecesAhead]) {
    typename X::template vec<Word> words[kPiecesAhead];
    load_words<X>(segment, pieces, words);
    X::lanes([&](auto lane) {
      std::uint32_t any = X::get(must, lane), zeros = X::get(minus, lane);
      unroll<kPiecesAhead>([&](auto j) {
        const bool exists = lane < pieces[j].cells;
        any |= exists && mandatory(X::get(words[j], lane)) ? 1 : 0;
        zeros += exists && mandatory.is_minus_zero(X::get(words[j], lane)) ? 1 : 0;
      });
      X::set(must, lane, any);
      X::set(minus, lane, zeros);
    });
    unroll<kPiecesAhead>([&](auto j) {
      if (pieces[j].cells != 0 && is_pair_piece(pieces[j].y, pieces[j].x)) {
        scan.equal_pairs += count_pairs<X, Word>(words[j], pieces[j].cells);
      }
    });
  });
  scan.mandatory = X::reduce_or(must);
  scan.negative_zeros = X::reduce_add(minus);
  return scan;
}

}  // namespace quern::kernels

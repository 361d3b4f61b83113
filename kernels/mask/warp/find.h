// The loops over a segment's cells by which a warp finds its mask; what is decided is in kernels/mask/find.h. The
// classes lie in memory that the lanes share, numbers of cells and special values are the same in all lanes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/bits.h"
#include "kernels/mask/find.h"
#include "kernels/mask/warp/encode.h"
#include "kernels/mask/warp/fill.h"
#include "kernels/mask/warp/level_choice.h"
#include "kernels/mask/warp/memory.h"
#include "kernels/mask/warp/patterns.h"
#include "kernels/mask/warp/scan.h"

namespace quern::kernels {

/// The forms that masks may have which a kernel finds.
enum class MaskForms : std::uint8_t { decisions, levels, any };

/// A Finder (see kernels/mask/find.h) of one warp. `Word` is not const. Of any form: the rules say which.
template <class X, class Word, MaskForms kForms>
class LaneMaskFinder {
 public:
  constexpr LaneMaskFinder(const LaneSegment<const Word>& segment, const LaneMaskRules& rules, LaneMaskShared& shared,
                           const LaneMaskMemory& memory)
      : segment_(segment), rules_(rules), shared_(shared), memory_(memory), mandatory_(rules) {}

  constexpr const LaneMaskCounts& mask() const { return mask_; }

  constexpr void find_mandatory() {
    LanePatterns<X> patterns(shared_);
    for_pieces(segment_, 0, segment_.rows(), [&](const LanePiece(&pieces)[kPiecesAhead]) {
      Words words[kPiecesAhead];
      load_words<X>(segment_, pieces, words);
      rolled(0, kPiecesAhead, [&](unsigned j) {
        const LanePiece piece = picked(pieces, j);
        const Words own = picked(words, j);
        const std::uint32_t marked = ballot_of<X>([&](auto lane) {
          if (lane >= piece.cells) return false;
          const bool must = mandatory_(X::get(own, lane));
          X::store(memory_.classes + piece.first + lane, lane, static_cast<std::uint8_t>(must ? 1 : 0));
          return must;
        });
        mask_.masked += static_cast<std::uint32_t>(popcount(marked));
        patterns.template add<Word>(own, marked);
      });
    });
    mask_.specials = patterns.specials(shared_.specials);
    has_classes_ = true;
    if (patterns.size() != 1) number_classes();
    X::sync();
  }

  constexpr void repeated_values(RepeatedValues<Word>& values) const {
    RepeatedSummary<Word, std::uint32_t> summary;
    const SampledRows sample(segment_.rows());
    for (std::uint32_t band = 0; band < segment_.rows(); band += SampledRows::kBand) {
      if (!sample.has(band)) continue;
      const auto left = static_cast<std::uint32_t>(segment_.rows() - band);
      const std::uint32_t end = band + (left < SampledRows::kBand ? left : std::uint32_t{SampledRows::kBand});
      for_pieces(segment_, band, end, [&](const LanePiece(&pieces)[kPiecesAhead]) {
        Words words[kPiecesAhead];
        typename X::template vec<bool> equal[kPiecesAhead];
        load_words<X>(segment_, pieces, words);
        X::lanes([&](auto lane) {
          unroll<kPiecesAhead>([&](auto j) {
            const bool pair = lane < pieces[j].cells && pieces[j].x + lane > 0;
            const Word before = pair ? segment_.cells[pieces[j].offset + lane - 1] : Word{0};
            X::set(equal[j], lane, pair && before == X::get(words[j], lane) && is_valid(pieces[j].first, lane));
          });
        });
        rolled(0, kPiecesAhead, [&](unsigned j) {
          const Words own = picked(words, j);
          std::uint32_t rest = X::ballot(picked(equal, j));
          while (rest != 0) {  // pairs side by side have the same value
            const auto start = static_cast<unsigned>(lowest_bit(rest));
            const auto length = lowest_clear_bit(rest >> start);
            summary.add(X::broadcast(own, start), length);
            rest &= ~(first_lanes(length) << start);
          }
        });
      });
    }
    summary.for_values([&](Word value) { values.add(value); });
  }

  constexpr void count_valid(RepeatedValues<Word>& values) const {
    constexpr std::size_t kMost = RepeatedValues<Word>::kMost;
    typename X::template vec<std::uint32_t> counts[kMost];
    X::lanes([&](auto lane) { unroll<kMost>([&](auto k) { X::set(counts[k], lane, 0u); }); });
    for_pieces(segment_, 0, segment_.rows(), [&](const LanePiece(&pieces)[kPiecesAhead]) {
      Words words[kPiecesAhead];
      load_words<X>(segment_, pieces, words);
      X::lanes([&](auto lane) {
        unroll<kPiecesAhead>([&](auto j) {
          if (lane >= pieces[j].cells || !is_valid(pieces[j].first, lane)) return;
          unroll<kMost>([&](auto k) {
            const std::uint32_t one = X::get(words[j], lane) == values.values[k] ? 1 : 0;
            X::set(counts[k], lane, X::get(counts[k], lane) + one);
          });
        });
      });
    });
    unroll<kMost>([&](auto k) { values.counts[k] = X::reduce_add(counts[k]); });
  }

  constexpr std::uint32_t specials() const { return mask_.specials; }
  constexpr std::uint32_t masked() const { return mask_.masked; }
  constexpr bool has_special(Word bits) const {
    bool found = false;
    for (std::uint32_t k = 0; k < mask_.specials; ++k) found |= X::load_same(shared_.specials + k) == bits;
    return found;
  }

  constexpr void add_special(Word value) {
    X::sync();
    in_one_lane<X>([&] { X::store(shared_.specials + mask_.specials, 0, std::uint64_t{value}); });
    ++mask_.specials;
    const auto number = static_cast<std::uint8_t>(mask_.specials);
    typename X::template vec<std::uint32_t> counts;
    X::lanes([&](auto lane) { X::set(counts, lane, 0u); });
    for_pieces(segment_, 0, segment_.rows(), [&](const LanePiece(&pieces)[kPiecesAhead]) {
      Words words[kPiecesAhead];
      load_words<X>(segment_, pieces, words);
      X::lanes([&](auto lane) {
        unroll<kPiecesAhead>([&](auto j) {
          if (lane >= pieces[j].cells) return;
          const bool equal = X::get(words[j], lane) == value;
          if (equal || !has_classes_) {
            X::store(memory_.classes + pieces[j].first + lane, lane, equal ? number : std::uint8_t{0});
          }
          X::set(counts, lane, X::get(counts, lane) + (equal ? 1u : 0u));
        });
      });
    });
    X::sync();
    has_classes_ = true;
    added_ = X::reduce_add(counts);
    mask_.masked += added_;
  }

  constexpr void drop_special() {
    X::sync();
    X::lanes([&](auto lane) {
      for (auto c = static_cast<std::uint32_t>(lane); c < segment_.elems(); c += kLanes) {
        if (X::load(memory_.classes + c, lane) == mask_.specials) X::store(memory_.classes + c, lane, std::uint8_t{0});
      }
    });
    X::sync();
    --mask_.specials;
    mask_.masked -= added_;
  }

  constexpr std::uint64_t value_cost() const {
    const std::uint32_t rows = segment_.rows(), cols = segment_.cols();
    const SampledRows sample(rows);
    RowSource source(rows, LaneHasValid<X>(memory_.classes, cols));
    std::uint64_t bits = 0;
    for (std::uint32_t r = 0; r < rows; ++r) {
      if (!sample.has(r)) continue;
      const std::uint32_t above = mask_.masked == 0 ? r - 1 : (r > 0 ? source(r - 1) : rows);
      bits += row_cost_of(mask_.masked == 0 ? r : source(r), r > 0, above);
    }
    return sample.scaled(bits);
  }

  constexpr std::uint64_t stored_bytes([[maybe_unused]] std::uint64_t most) const {
    if (mask_.masked == 0) return 0;
    if constexpr (kForms == MaskForms::decisions) {
      return bytes_of_decisions(most);
    } else if constexpr (kForms == MaskForms::levels) {
      return bytes_by_levels();
    } else {
      return rules_.by_levels ? bytes_by_levels() : bytes_of_decisions(most);
    }
  }

 private:
  using Words = typename X::template vec<Word>;

  constexpr std::uint64_t bytes_of_decisions(std::uint64_t most) const {
    return LaneMaskEncoder<X, const Word, ByteCount>(segment_, mask_, rules_.views.all(), shared_, memory_,
                                                     ByteCount(most))
        .write();
  }
  constexpr std::uint64_t bytes_by_levels() const {
    return estimate_lane_levels<X>(segment_.planes(), mask_, sizeof(Word), rules_.views.all(), shared_, memory_);
  }

  constexpr bool is_valid(std::uint32_t first, std::size_t lane) const {
    return mask_.masked == 0 || X::load(memory_.classes + first + lane, lane) == 0;
  }

  /// From marks to classes; cells whose bits have no class are verbatim.
  constexpr void number_classes() {
    for_pieces(segment_, 0, segment_.rows(), [&](const LanePiece(&pieces)[kPiecesAhead]) {
      Words words[kPiecesAhead];
      load_words<X>(segment_, pieces, words);
      rolled(0, kPiecesAhead, [&](unsigned j) {
        const LanePiece piece = picked(pieces, j);
        const Words own = picked(words, j);
        const std::uint32_t verbatim = ballot_of<X>([&](auto lane) {
          if (lane >= piece.cells || X::load(memory_.classes + piece.first + lane, lane) == 0) return false;
          std::uint8_t number = kVerbatimClass;
          for (std::uint32_t k = 0; k < mask_.specials; ++k) {
            if (X::load(shared_.specials + k, lane) == X::get(own, lane)) number = static_cast<std::uint8_t>(k + 1);
          }
          X::store(memory_.classes + piece.first + lane, lane, number);
          return number == kVerbatimClass;
        });
        mask_.verbatim += static_cast<std::uint32_t>(popcount(verbatim));
      });
    });
  }

  constexpr LaneFilledRow<X, Word> filled_row(std::uint32_t row) const {
    if (row >= segment_.rows()) return {};
    return {segment_.row(row), mask_.masked == 0 ? nullptr : memory_.classes + row * segment_.cols(), segment_.cols()};
  }

  /// row_cost of the rows that two rows take their values from; the one above may not be.
  constexpr std::uint64_t row_cost_of(std::uint32_t row, bool has_above, std::uint32_t above) const {
    LaneFilledRow<X, Word> now = filled_row(row), before = filled_row(has_above ? above : segment_.rows());
    std::uint64_t total = 0;
    std::int32_t left = 0, left_above = 0;
    for (std::uint32_t x = 0; x < segment_.cols(); x += kPiecesAhead * kLanes) {
      Words words[kPiecesAhead], words_above[kPiecesAhead];
      now.read(x, words);
      before.read(x, words_above);
      rolled(0, kPiecesAhead, [&](unsigned j) {
        const std::uint32_t begin = x + j * kLanes;
        if (begin >= segment_.cols()) return;
        typename X::template vec<std::int32_t> step, step_above;
        left = code_steps(picked(words, j), true, left, step);
        left_above = code_steps(picked(words_above, j), has_above, left_above, step_above);
        typename X::template vec<std::uint32_t> one, two;
        X::lanes([&](auto lane) {
          const bool exists = begin + lane < segment_.cols();
          const std::int32_t d = X::get(step, lane);
          X::set(one, lane, exists ? residual_bits(d) : 0u);
          X::set(two, lane, exists ? residual_bits(d - X::get(step_above, lane)) : 0u);
        });
        const std::uint32_t bits = X::reduce_add(one), other = X::reduce_add(two);
        total += bits < other ? bits : other;
      });
    }
    return total;
  }

  /// Differences of the codes of neighbours; `left` comes before the first. Returns the last code. Without a row all
  /// codes are 0.
  constexpr std::int32_t code_steps(const Words& words, bool has_row, std::int32_t left,
                                    typename X::template vec<std::int32_t>& step) const {
    typename X::template vec<std::int32_t> codes, fill;
    X::lanes([&](auto lane) {
      X::set(codes, lane, 0);
      X::set(fill, lane, left);
    });
    if (has_row) {
      with_words_of_width<Word>(rules_.element, [&]<class W>() {
        X::lanes([&](auto lane) { X::set(codes, lane, cost_code<W>(rules_.repeated.cost, X::get(words, lane))); });
      });
    }
    X::zip_left(
        step, [](std::int32_t code, std::int32_t before) { return code - before; }, codes, fill);
    return X::broadcast(codes, kLanes - 1);
  }

  const LaneSegment<const Word>& segment_;
  const LaneMaskRules& rules_;
  LaneMaskShared& shared_;
  const LaneMaskMemory& memory_;
  MandatoryWords<Word> mandatory_;
  LaneMaskCounts mask_;
  std::uint32_t added_ = 0;
  bool has_classes_ = false;
};

/// What became of a segment.
struct LaneMaskResult {
  LaneMaskCounts mask;
  std::uint64_t stored_bytes = 0;  ///< of the mask; more than the capacity when it does not fit
};

/// Finds a segment's mask, writes its stored form to `out` and the segment with its gaps filled to `copy`. Nothing is
/// written when no cell is masked, and no copy when the stored form does not fit. `counts` are those of scan_segment.
template <class X, class Word>
constexpr LaneMaskResult mask_lanes(const LaneSegment<const Word>& segment, const LaneMaskRules& rules,
                                    const ScanCounts& counts, LaneMaskShared& shared, const LaneMaskMemory& memory,
                                    std::uint8_t* out, std::uint64_t capacity, Word* copy) {
  LaneMaskFinder<X, Word, MaskForms::decisions> finder(segment, rules, shared, memory);
  find_mask<WordsOfWidth<Word>>(finder, rules.repeated, counts, segment.elems());
  LaneMaskResult result{finder.mask(), 0};
  if (result.mask.masked == 0) return result;
  result.stored_bytes = LaneMaskEncoder<X, const Word, BoundedBytes>(segment, result.mask, rules.views.all(), shared,
                                                                     memory, BoundedBytes(out, capacity))
                            .write();
  if (result.stored_bytes <= capacity) fill_lanes<X>(segment, memory.classes, copy);
  return result;
}

}  // namespace quern::kernels

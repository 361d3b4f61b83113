// Which values of a segment are masked: the decisions, the same on every execution model. The loops over cells belong
// to a Finder, one for a thread (in libcompress/pipeline/mask) and one for a warp (kernels/mask/warp/find.h).
//
// A Finder has
//   find_mandatory()           masks what must be masked
//   repeated_values(values)    adds values among pairs of equal neighbours, at most kRepeatedSlots
//   count_valid(values)        counts the valid cells that hold each of them
//   specials(), masked()       numbers of special values and of masked cells
//   has_special(bits)
//   add_special(value)         masks all cells that hold the value; none of them is masked yet
//   drop_special()             takes the last one back
//   value_cost()               estimated bits for the segment with its gaps filled
//   stored_bytes(most)         bytes of the mask's stored form; any larger number when they are more than `most`
#pragma once

#include <cstdint>

#include "kernels/mask/cost.h"
#include "kernels/mask/repeated.h"
#include "kernels/mask/scan.h"
#include "kernels/mask/segment.h"

namespace quern::kernels {

/// What is masked besides non-finite and declared values.
struct RepeatedRules {
  bool enabled = true;
  CostScale cost;  ///< for the bound that the segment is coded under
};

inline constexpr std::uint64_t kFewMinusZeros = 3;

/// False when the scan saw too few equal neighbours for any value to pay: not one pair in 64 of those it looked at,
/// which are an eighth of all.
constexpr bool may_have_repeated(const RepeatedRules& rules, const ScanCounts& counts, std::uint64_t cells) {
  constexpr std::uint64_t kPairShare = 64 * kPairPieceEvery;
  const bool minus_zeros = counts.negative_zeros >= kFewMinusZeros && rules.cost.minus_zero_bits != 0;
  return rules.enabled && (counts.equal_pairs > cells / kPairShare || minus_zeros);
}

/// Values, and how many valid cells hold them.
template <class Word>
struct RepeatedValues {
  static constexpr std::size_t kMost = kRepeatedSlots + 1;
  Word values[kMost]{};
  std::uint64_t counts[kMost]{};
  unsigned size = 0;

  constexpr void add(Word value) {
    unroll<kMost>([&](auto k) {
      if (k == size) values[k] = value;
    });
    ++size;
  }
  /// Calls f(value, count) for each of them.
  template <class F>
  constexpr void for_each(F&& f) const {
    unroll<kMost>([&](auto k) {
      if (k < size) f(values[k], counts[k]);
    });
  }
};

/// Masks repeated values one after the other while that pays. A -0.0 that a codec would have to keep bit for bit is
/// tried even when it is rare.
template <class W, class Finder>
constexpr void mask_repeated(Finder& finder, const CostScale& cost, const ScanCounts& counts, std::uint64_t cells) {
  using Word = typename W::Word;
  constexpr std::uint64_t kShare = 64;    // a candidate holds more than 1/64 of the cells
  constexpr std::uint64_t kMargin = 256;  // a mask must save more than 1/256

  RepeatedValues<Word> values;
  finder.repeated_values(values);
  const bool dear = cost.minus_zero_bits != 0;
  bool minus_zero_repeated = false;
  values.for_each([&](Word value, std::uint64_t) { minus_zero_repeated |= dear && value == W::kSign; });
  if (dear && counts.negative_zeros != 0 && !minus_zero_repeated) values.add(W::kSign);
  if (values.size == 0) return;
  finder.count_valid(values);

  RepeatedCandidates<Word> candidates;
  std::uint64_t minus_zeros = 0;
  values.for_each([&](Word value, std::uint64_t count) {
    const bool minus_zero = dear && value == W::kSign;
    if (minus_zero) minus_zeros = count;
    const bool many = count > cells / kShare && count < cells - finder.masked();
    const bool tried = minus_zero ? count >= kFewMinusZeros || (many && minus_zero_repeated) : many;
    if (tried) candidates.offer(value, count);
  });
  if (candidates.empty()) return;

  std::uint64_t best = UINT64_MAX;
  for (bool trial = false;; trial = true) {
    std::uint64_t limit = UINT64_MAX;
    if (trial) {
      if (candidates.empty() || finder.specials() == kMaxSpecials) return;
      finder.add_special(candidates.next());
      limit = best - best / kMargin;
    }
    std::uint64_t bits = finder.value_cost();
    if (!finder.has_special(W::kSign)) bits += cost.minus_zero_bits * minus_zeros;
    if (bits < limit) bits += 8 * finder.stored_bytes((limit - bits) / 8);
    if (bits < limit) {
      best = bits;
    } else {
      finder.drop_special();
    }
  }
}

/// Finds a segment's mask.
template <class W, class Finder>
constexpr void find_mask(Finder& finder, const RepeatedRules& rules, const ScanCounts& counts, std::uint64_t cells) {
  if (counts.any_mandatory) finder.find_mandatory();
  if (may_have_repeated(rules, counts, cells)) mask_repeated<W>(finder, rules.cost, counts, cells);
}

}  // namespace quern::kernels

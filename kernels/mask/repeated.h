// Values that are repeated often: candidates from pairs of equal neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/common/unroll.h"

namespace quern::kernels {

inline constexpr std::size_t kRepeatedSlots = 7;

/// Finds values that make up a considerable share of all pairs of equal neighbours (Misra and Gries' summary, which
/// keeps every value above 1/(kRepeatedSlots+1) of the pairs). The values it ends with depend on the pairs in their
/// order, not on how they are cut into runs.
template <class Word, class Count = std::uint64_t>
class RepeatedSummary {
 public:
  /// `count` pairs of the same value, one after another.
  constexpr void add(Word value, Count count) {
    if (slots_[0].count != 0 && slots_[0].value == value) {
      slots_[0].count += count;
      return;
    }
    bool held = false;
    unroll<kRepeatedSlots - 1>([&](auto k) {
      Slot& slot = slots_[k + 1];
      if (held || slot.count == 0 || slot.value != value) return;
      held = true;
      slot.count += count;
      std::swap(slot, slots_[0]);
    });
    if (held) return;
    Count least = slots_[0].count;
    unroll<kRepeatedSlots>([&](auto k) { least = slots_[k].count < least ? slots_[k].count : least; });
    const Count paid = least < count ? least : count;
    unroll<kRepeatedSlots>([&](auto k) { slots_[k].count -= paid; });
    if (paid == count) return;
    unroll<kRepeatedSlots>([&](auto k) {
      if (held || slots_[k].count != 0) return;
      held = true;
      slots_[k] = {value, count - paid};
      std::swap(slots_[k], slots_[0]);
    });
  }

  /// Calls f(value) for each value kept.
  template <class F>
  constexpr void for_values(F&& f) const {
    unroll<kRepeatedSlots>([&](auto k) {
      if (slots_[k].count != 0) f(slots_[k].value);
    });
  }

 private:
  struct Slot {
    Word value;
    Count count;
  };
  Slot slots_[kRepeatedSlots]{};
};

/// Values whose masking is tried, and how many cells hold them: the most frequent first, ties to the smaller value.
template <class Word>
class RepeatedCandidates {
 public:
  constexpr void offer(Word value, std::uint64_t count) {
    Candidate offered{value, count};
    unroll<kMost>([&](auto k) {
      Candidate& held = best_[k];
      const bool before =
          offered.count != held.count ? offered.count > held.count : held.count != 0 && offered.value < held.value;
      if (before) std::swap(offered, held);
    });
  }
  constexpr bool empty() const { return best_[0].count == 0; }
  /// Takes the first away.
  constexpr Word next() {
    const Word value = best_[0].value;
    unroll<kMost - 1>([&](auto k) { best_[k] = best_[k + 1]; });
    best_[kMost - 1] = {};
    return value;
  }

 private:
  static constexpr std::size_t kMost = 3;
  struct Candidate {
    Word value;
    std::uint64_t count;
  };
  Candidate best_[kMost]{};
};

}  // namespace quern::kernels

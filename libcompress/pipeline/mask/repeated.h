// Values that are repeated often: candidates from equal neighbours, then masked one after the other while that pays.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <quern/memory.h>

#include "libcompress/pipeline/mask/cost.h"
#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/scan.h"

namespace quern::mask {

/// Finds values that make up a considerable share of all pairs of equal neighbours (Misra and Gries' summary, which
/// keeps every value above 1/(kSlots+1) of the pairs).
template <class Word>
class RepeatedCandidates {
 public:
  static constexpr std::size_t kSlots = 7;

  void add(Word value) {
    if (slots_[0].count != 0 && slots_[0].value == value) {
      ++slots_[0].count;
      return;
    }
    Slot* free = nullptr;
    for (Slot& s : slots_) {
      if (s.count != 0 && s.value == value) {
        ++s.count;
        std::swap(s, slots_[0]);
        return;
      }
      if (s.count == 0 && free == nullptr) free = &s;
    }
    if (free != nullptr) {
      *free = {value, 1};
    } else {
      for (Slot& s : slots_) --s.count;
    }
  }

  Vector<Word> values() const {
    Vector<Word> values;
    for (const Slot& s : slots_) {
      if (s.count != 0) values.push_back(s.value);
    }
    return values;
  }

 private:
  struct Slot {
    Word value = 0;
    std::uint64_t count = 0;
  };
  std::array<Slot, kSlots> slots_{};
};

template <class W>
class RepeatedFinder {
 public:
  using Word = typename W::Word;

  RepeatedFinder(const ConstBox3& box, const EnforcedBound& bound, const ScanCounts& counts, SegmentMask& mask)
      : box_(box),
        bound_(bound),
        cells_(box.elems()),
        minus_zero_cost_(W::kFloat && bound.kind != BoundKind::lossless ? kExceptionBits : 0),
        mask_(mask) {
    if (minus_zero_cost_ != 0 && counts.negative_zeros != 0) minus_zeros_ = count_of(W::kSign);
  }

  Status run() {
    const auto values = candidates();
    if (values.empty()) return {};
    copy_.resize(cells_);
    CostEstimate<W> estimate(bound_, box_.extents);
    std::uint64_t best = 0;
    QUERN_RETURN_IF_ERROR(cost(mask_, estimate, UINT64_MAX, best));
    for (const Word value : values) {
      if (mask_.specials.size() == kMaxSpecials) break;
      SegmentMask with = mask_;
      add_class(value, with);
      std::uint64_t bits = 0;
      const std::uint64_t limit = best - best / kMargin;
      QUERN_RETURN_IF_ERROR(cost(with, estimate, limit, bits));
      if (bits >= limit) continue;
      best = bits;
      mask_ = std::move(with);
    }
    return {};
  }

 private:
  static constexpr std::uint64_t kExceptionBits = 40;  // what a codec pays for an element kept bit for bit
  static constexpr std::uint64_t kMargin = 256;        // a mask must save more than 1/256
  static constexpr std::uint64_t kShare = 64;          // a candidate holds more than 1/64 of the cells
  static constexpr std::size_t kMaxCandidates = 3;

  struct Candidate {
    Word value;
    std::uint64_t count;
  };

  Vector<Word> candidates() const {
    RepeatedCandidates<Word> summary;
    const bool masked = !mask_.empty();
    const SampledRows sample(box_.extents);
    for_rows([&](const Word* p, std::uint64_t first) {
      if (!sample.has(first / box_.extents[2])) return;
      for (std::uint64_t x = 1; x < box_.extents[2]; ++x) {
        if (p[x] == p[x - 1] && !(masked && mask_.classes[first + x] != 0)) summary.add(p[x]);
      }
    });
    Vector<Word> values = summary.values();
    if constexpr (W::kFloat) {
      if (minus_zero_cost_ != 0 && minus_zeros_ >= kFewMinusZeros &&
          std::find(values.begin(), values.end(), W::kSign) == values.end()) {
        values.push_back(W::kSign);
      }
    }
    Vector<Candidate> counted;
    for (const Word value : values) {
      const std::uint64_t count = count_of(value);
      const bool exceptional = W::kFloat && value == W::kSign && minus_zero_cost_ != 0;
      if ((count > cells_ / kShare && count < cells_ - mask_.masked) || (exceptional && count >= kFewMinusZeros)) {
        counted.push_back({value, count});
      }
    }
    std::sort(counted.begin(), counted.end(), [](const Candidate& a, const Candidate& b) {
      return a.count != b.count ? a.count > b.count : a.value < b.value;
    });
    if (counted.size() > kMaxCandidates) counted.resize(kMaxCandidates);
    Vector<Word> result;
    for (const Candidate& c : counted) result.push_back(c.value);
    return result;
  }

  /// Valid cells that hold `value`.
  std::uint64_t count_of(Word value) const {
    std::uint64_t count = 0;
    for_rows([&](const Word* p, std::uint64_t first) {
      if (mask_.empty()) {
        for (std::uint64_t x = 0; x < box_.extents[2]; ++x) count += p[x] == value;
      } else {
        const std::uint8_t* classes = mask_.classes.data() + first;
        for (std::uint64_t x = 0; x < box_.extents[2]; ++x) count += (p[x] == value) & (classes[x] == 0);
      }
    });
    return count;
  }

  void add_class(Word value, SegmentMask& mask) const {
    mask.classes.resize(cells_);
    mask.specials.push_back(value);
    const auto number = static_cast<std::uint8_t>(mask.specials.size());
    for_rows([&](const Word* p, std::uint64_t first) {
      std::uint8_t* classes = mask.classes.data() + first;
      std::uint64_t count = 0;
      for (std::uint64_t x = 0; x < box_.extents[2]; ++x) {
        classes[x] = p[x] == value ? number : classes[x];
        count += p[x] == value;
      }
      mask.masked += count;
    });
  }

  /// Bits for the values with the gaps of `mask` filled, for minus zeros that are not in it and for the mask itself;
  /// the latter is left out when the rest reaches `limit`.
  Status cost(const SegmentMask& mask, CostEstimate<W>& estimate, std::uint64_t limit, std::uint64_t& bits) {
    const std::uint64_t cols = box_.extents[2], rows = box_.extents[1];
    for_rows([&](const Word* p, std::uint64_t first) { std::copy(p, p + cols, copy_.data() + first); });
    QUERN_RETURN_IF_ERROR(fill_gaps({copy_.data(), box_.extents, {rows * cols, cols}}, W::kDtype, mask));
    bits = estimate(copy_.data());
    const auto& s = mask.specials;
    if (std::find(s.begin(), s.end(), std::uint64_t{W::kSign}) == s.end()) bits += minus_zero_cost_ * minus_zeros_;
    if (bits >= limit) return {};
    stored_.clear();
    QUERN_RETURN_IF_ERROR(encode_mask(mask, box_.extents, W::kDtype, stored_));
    bits += 8 * stored_.size();
    return {};
  }

  template <class Body>
  void for_rows(Body&& body) const {
    std::uint64_t first = 0;
    for (std::uint64_t i = 0; i < box_.extents[0]; ++i) {
      for (std::uint64_t y = 0; y < box_.extents[1]; ++y, first += box_.extents[2]) body(row_of<W>(box_, i, y), first);
    }
  }

  static constexpr std::uint64_t kFewMinusZeros = 3;

  const ConstBox3& box_;
  const EnforcedBound bound_;
  std::uint64_t cells_;
  std::uint64_t minus_zero_cost_;
  std::uint64_t minus_zeros_ = 0;  // not masked yet
  SegmentMask& mask_;
  Vector<Word> copy_;
  Vector<std::uint8_t> stored_;
};

/// Adds classes to `mask` for repeated values that pay. Costs nothing when the scan saw too few equal neighbours.
template <class W>
Status add_repeated(const ConstBox3& box, const EnforcedBound& bound, const ScanCounts& counts, SegmentMask& mask) {
  constexpr std::uint64_t kPairShare = 64;
  const std::uint64_t cells = box.elems();
  const bool minus_zeros = W::kFloat && counts.negative_zeros >= 3 && bound.kind != BoundKind::lossless;
  if (counts.equal_neighbours <= cells / kPairShare && !minus_zeros) return {};
  return RepeatedFinder<W>(box, bound, counts, mask).run();
}

}  // namespace quern::mask

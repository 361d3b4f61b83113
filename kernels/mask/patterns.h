// Bit patterns of cells that must be masked: which of them get a class of their own.
#pragma once

#include <cstdint>

#include "kernels/mask/segment.h"

namespace quern::kernels {

inline constexpr unsigned kMaxPatterns = 64;  ///< that are told apart; more of them are not counted
inline constexpr unsigned kFewPatterns = 4;

struct CountedPattern {
  std::uint64_t bits;
  std::uint64_t count;
};

/// Place of `own` among the special values: the most frequent first, ties to the smaller bits. kMaxSpecials and more
/// when it gets no class: there are others enough, or it occurs once among many, which is cheaper verbatim. `at(k)`
/// gives the k-th of all `patterns`.
template <class At>
constexpr unsigned special_place(const CountedPattern& own, unsigned patterns, At&& at) {
  if (own.count == 1 && patterns > kFewPatterns) return kMaxSpecials;
  unsigned place = 0;
  for (unsigned k = 0; k < patterns; ++k) {
    const CountedPattern other = at(k);
    const bool before = other.count != own.count ? other.count > own.count : other.bits < own.bits;
    place += before ? 1 : 0;
  }
  return place;
}

/// Counts patterns as one thread meets them.
class PatternTable {
 public:
  constexpr void add(std::uint64_t bits) {
    if (last_ < size_ && patterns_[last_].bits == bits) {
      ++patterns_[last_].count;
      return;
    }
    for (last_ = 0; last_ < size_; ++last_) {
      if (patterns_[last_].bits == bits) {
        ++patterns_[last_].count;
        return;
      }
    }
    if (size_ < kMaxPatterns) patterns_[size_++] = {bits, 1};
  }

  /// Writes the special values; returns their number.
  constexpr unsigned specials(std::uint64_t (&out)[kMaxSpecials]) const {
    unsigned count = 0;
    for (unsigned k = 0; k < size_; ++k) {
      const unsigned place = special_place(patterns_[k], size_, [this](unsigned other) { return patterns_[other]; });
      if (place >= kMaxSpecials) continue;
      out[place] = patterns_[k].bits;
      ++count;
    }
    return count;
  }

 private:
  CountedPattern patterns_[kMaxPatterns]{};
  unsigned size_ = 0;
  unsigned last_ = 0;
};

}  // namespace quern::kernels

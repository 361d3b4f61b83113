// Bit patterns of cells that must be masked, counted by a warp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/mask/patterns.h"
#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

/// Counts the bit patterns of cells that must be masked, as PatternTable does, run by run.
template <class X>
class LanePatterns {
 public:
  constexpr explicit LanePatterns(LaneMaskShared& shared) : table_(shared.patterns) {}

  /// The words of the marked lanes.
  template <class Word>
  constexpr void add(const typename X::template vec<Word>& words, std::uint32_t marked) {
    while (marked != 0) {
      const Word value = X::broadcast(words, lowest_bit(marked));
      const std::uint32_t same =
          ballot_of<X>([&](auto lane) { return (marked >> lane & 1) != 0 && X::get(words, lane) == value; });
      marked &= ~same;
      if (waiting_ == 0 || bits_ != value) {
        count_waiting();
        bits_ = value;
      }
      waiting_ += popcount(same);
    }
  }

  /// Writes the special values; returns their number.
  constexpr std::uint32_t specials(std::uint64_t* out) {
    count_waiting();
    std::uint32_t count = 0;
    for (std::uint32_t first = 0; first < size_; first += kLanes) {
      count += popcount(ballot_of<X>([&](auto lane) {
        const auto own = first + static_cast<std::uint32_t>(lane);
        if (own >= size_) return false;
        const CountedPattern pattern = X::load(table_ + own, lane);
        const unsigned place =
            special_place(pattern, size_, [&](unsigned other) { return X::load(table_ + other, lane); });
        if (place >= kMaxSpecials) return false;
        X::store(out + place, lane, pattern.bits);
        return true;
      }));
    }
    X::sync();
    return count;
  }
  /// The number of patterns that were told apart.
  constexpr std::uint32_t size() const { return size_; }

 private:
  /// Adds what waits to its pattern, or a new one while there is room.
  constexpr void count_waiting() {
    if (waiting_ == 0) return;
    std::uint32_t place = size_;
    for (std::uint32_t first = 0; first < size_ && place == size_; first += kLanes) {
      const std::uint32_t found = ballot_of<X>([&](auto lane) {
        const auto own = first + static_cast<std::uint32_t>(lane);
        return own < size_ && X::load(&table_[own].bits, lane) == bits_;
      });
      if (found != 0) place = first + lowest_bit(found);
    }
    X::sync();
    if (place < kMaxPatterns) {
      in_one_lane<X>([&] {
        const std::uint64_t before = place < size_ ? X::load(&table_[place].count, 0) : 0;
        X::store(table_ + place, 0, CountedPattern{bits_, before + waiting_});
      });
      if (place == size_) ++size_;
    }
    X::sync();
    waiting_ = 0;
  }

  CountedPattern* table_;
  std::uint32_t size_ = 0;
  std::uint64_t bits_ = 0;
  std::uint32_t waiting_ = 0;
};

}  // namespace quern::kernels

// Shuffles of words for rANS coders whose lanes are vectors: chosen words side by side, and back to their lanes.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/common/bits.h"

namespace quern::kernels {

/// For each mask of eight lanes, bytes of a shuffle of eight words: the chosen words gathered at the upper end, and
/// words dealt from the lower end to the lanes chosen.
template <class Isa>
struct WordShuffles {
  using Table = std::array<std::array<std::uint8_t, 16>, 256>;
  static constexpr Table make(bool deal) {
    Table table{};
    for (unsigned mask = 0; mask < 256; ++mask) {
      for (std::uint8_t& byte : table[mask]) byte = 0x80;
      const unsigned count = popcount(mask);
      unsigned rank = 0;
      for (unsigned lane = 0; lane < 8; ++lane) {
        if ((mask >> lane & 1) == 0) continue;
        const unsigned to = deal ? lane : 8 - count + rank;
        const unsigned from = deal ? rank : lane;
        table[mask][2 * to] = static_cast<std::uint8_t>(2 * from);
        table[mask][2 * to + 1] = static_cast<std::uint8_t>(2 * from + 1);
        ++rank;
      }
    }
    return table;
  }
  alignas(64) static constexpr Table kGather = make(false);
  alignas(64) static constexpr Table kDeal = make(true);
};

}  // namespace quern::kernels

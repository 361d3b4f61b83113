// rANS over bytes on 32 lanes: what one lane does, the tables it needs, and how symbols are dealt to parts and lanes.
// States have 31 bits, so that division by a frequency is one 32-bit product; words have 16 bits and are written
// downwards, read upwards. J. Duda, "Asymmetric numeral systems", arXiv:1311.2540.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"

namespace quern::kernels {

inline constexpr std::size_t kRansLanes = 32;
inline constexpr unsigned kLaneSumBits = 11;
inline constexpr std::uint32_t kLaneSum = 1u << kLaneSumBits;  ///< of the frequencies of a table
inline constexpr std::uint32_t kLaneFloor = 1u << 15;          ///< a state is never below this between symbols
inline constexpr std::size_t kMostLaneParts = 4;
inline constexpr std::size_t kMostLaneContexts = 8;

/// Symbols are cut into parts with 32 states each, that do not wait for each other.
[[gnu::always_inline]] constexpr std::size_t lane_parts(std::size_t symbols) {
  if (symbols < (std::size_t{1} << 15)) return 1;
  return symbols < (std::size_t{1} << 17) ? 2 : kMostLaneParts;
}
/// Whole groups of 32 symbols in each part; the last part has what is left over besides.
[[gnu::always_inline]] constexpr std::size_t lane_part_groups(std::size_t symbols) {
  return symbols / kRansLanes / lane_parts(symbols);
}

/// Which table a symbol has.
enum class LaneContext : std::uint8_t {
  none = 0,      ///< there is one
  previous = 1,  ///< by the sum of the 32 symbols of the group before in the part, 0 before the first
  given = 2,     ///< by something known of each symbol
};

/// What encoding takes, for each symbol.
struct LaneEncodeTable {
  std::uint32_t reciprocal[256];
  std::uint32_t rest[256];  ///< frequency, 12 bits; shift of the quotient, 5 bits; what is added to the state, 12 bits
};

[[gnu::always_inline]] constexpr void set_lane_symbol(LaneEncodeTable& table, unsigned symbol, std::uint32_t frequency,
                                                      std::uint32_t start) {
  if (frequency < 2) {  // the product gives state - 1; the rest of the state is made up for in what is added
    table.reciprocal[symbol] = ~0u;
    table.rest[symbol] = 1 | (start + kLaneSum - 1) << 17;
    return;
  }
  const unsigned length = bit_length(frequency - 1);
  table.reciprocal[symbol] =
      static_cast<std::uint32_t>(((std::uint64_t{1} << (length + 31)) + frequency - 1) / frequency);
  table.rest[symbol] = frequency | (length - 1) << 12 | start << 17;
}

/// Puts a symbol into a state; writes at most one word.
[[gnu::always_inline]] inline void lane_encode(std::uint32_t& state, std::uint32_t reciprocal, std::uint32_t rest,
                                               std::uint16_t*& words) {
  const std::uint32_t frequency = rest & 0xfff;
  if (state >= frequency << (31 - kLaneSumBits)) {
    *--words = static_cast<std::uint16_t>(state);
    state >>= 16;
  }
  state += (rest >> 17) + (multiply_high(state, reciprocal) >> (rest >> 12 & 31)) * (kLaneSum - frequency);
}

/// One entry for each slot: frequency << 20 | offset in the symbol's range << 8 | symbol.
struct LaneDecodeTable {
  std::uint32_t entries[kLaneSum];
};

/// Takes a symbol out of a state, which the caller refills when it is below kLaneFloor.
[[gnu::always_inline]] inline std::uint8_t lane_decode(std::uint32_t& state, const LaneDecodeTable& table) {
  const std::uint32_t entry = table.entries[state & (kLaneSum - 1)];
  state = (entry >> 20) * (state >> kLaneSumBits) + (entry >> 8 & (kLaneSum - 1));
  return static_cast<std::uint8_t>(entry);
}

}  // namespace quern::kernels

// Range-variant asymmetric numeral systems (rANS): one step of encoding and decoding, for symbols and for bits without
// a model. 32-bit states, 16-bit words, frequencies of a chosen sum. Words are written downwards and read upwards. J.
// Duda, "Asymmetric numeral systems", arXiv:1311.2540.
#pragma once

#include <cstdint>

namespace quern::kernels {

inline constexpr std::uint32_t kRansFloor = 1u << 16;  ///< a state is never below this between steps
inline constexpr unsigned kRansPlainBits = 16;         ///< most bits that one step without a model takes

/// What encoding a symbol needs: division by its frequency is a multiplication by a fixed reciprocal.
struct RansEncodeEntry {
  std::uint64_t reciprocal = 0;  ///< floor(2^63 / frequency) + 1
  std::uint32_t frequency = 0;
  std::uint32_t start = 0;  ///< sum of the frequencies of lower symbols
};

constexpr RansEncodeEntry make_rans_entry(std::uint32_t frequency, std::uint32_t start) {
  return {(std::uint64_t{1} << 63) / frequency + 1, frequency, start};
}

/// Moves the low word of a state out if the state is at least `limit` <= 2^32. Without a branch, which nobody could
/// foretell: the place below `words` is written in any case.
[[gnu::always_inline]] inline void put_word(std::uint32_t& state, std::uint64_t limit, std::uint16_t*& words) {
  const std::uint64_t full = (limit - 1 - state) >> 63;
  words[-1] = static_cast<std::uint16_t>(state);
  words -= full;
  state >>= 16 * full;
}

/// A state below frequency << (32 - SumBits) with a symbol put into it. Frequencies sum to 2^SumBits, SumBits <= 16.
template <unsigned SumBits>
[[gnu::always_inline]] inline std::uint32_t rans_next(std::uint32_t state, const RansEncodeEntry& entry) {
  __extension__ using Wide = unsigned __int128;
  // state < 2^32 and frequency <= 2^16: the excess state / 2^63 stays below 1 / frequency, so the quotient is exact.
  const auto quotient = static_cast<std::uint32_t>((Wide{state} * 2 * entry.reciprocal) >> 64);
  return state + quotient * ((1u << SumBits) - entry.frequency) + entry.start;
}

/// Puts a symbol into a state; writes at most one word.
template <unsigned SumBits>
[[gnu::always_inline]] inline void rans_encode(std::uint32_t& state, const RansEncodeEntry& entry,
                                               std::uint16_t*& words) {
  put_word(state, std::uint64_t{entry.frequency} << (32 - SumBits), words);
  state = rans_next<SumBits>(state, entry);
}

/// Puts the low `count` <= kRansPlainBits bits of `bits` into a state, the bits above them being zero.
[[gnu::always_inline]] inline void rans_encode_plain(std::uint32_t& state, std::uint32_t bits, unsigned count,
                                                     std::uint16_t*& words) {
  put_word(state, std::uint64_t{1} << (32 - count), words);
  state = state << count | bits;
}

/// Words of one state, hostile: past the end zeros are read and `failed` is set.
struct RansSource {
  const std::uint8_t* at = nullptr;
  const std::uint8_t* end = nullptr;
  std::uint32_t state = 0;
  bool failed = false;

  [[gnu::always_inline]] constexpr void refill() {
    if (state >= kRansFloor) return;
    std::uint32_t word = 0;
    if (at != end) {
      word = static_cast<std::uint32_t>(at[0]) | static_cast<std::uint32_t>(at[1]) << 8;
      at += 2;
    } else {
      failed = true;
    }
    state = state << 16 | word;
  }
  [[gnu::always_inline]] constexpr std::uint32_t take_plain(unsigned count) {
    const std::uint32_t bits = state & ((1u << count) - 1);
    state >>= count;
    refill();
    return bits;
  }
  /// True when every word was used and the state is the one encoding began with.
  constexpr bool finished() const { return at == end && state == kRansFloor && !failed; }
};

}  // namespace quern::kernels

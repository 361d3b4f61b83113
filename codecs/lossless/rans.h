// Interleaved range-variant asymmetric numeral systems (rANS) over 8-bit symbols, integers only: tables of a symbol's
// range, one encoding and one decoding step. 32-bit states, 16-bit words, 12-bit frequencies.
// J. Duda, "Asymmetric numeral systems", arXiv:1311.2540.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "codecs/lossless/bits.h"
#include "kernels/entropy/frequency_table.h"

namespace quern::codec::lossless {

inline constexpr unsigned kFrequencyBits = 12;
inline constexpr std::uint32_t kFrequencySum = 1u << kFrequencyBits;
inline constexpr std::uint32_t kStateFloor = 1u << 16;  ///< a state is never below this between symbols
inline constexpr std::size_t kStates = 8;               ///< interleaved states

using kernels::Counts;
using kernels::entropy_cost;
using kernels::Frequencies;
using kernels::log2_fixed;

inline void normalize(const Counts& counts, Frequencies& frequencies) {
  kernels::normalize_counts<kFrequencyBits>(counts, frequencies);
}
inline void write_table(const Frequencies& frequencies, BitWriter& writer) {
  kernels::write_frequencies(frequencies, writer);
}
inline bool read_table(BitReader& reader, unsigned last_symbol, Frequencies& frequencies) {
  return kernels::read_frequencies<kFrequencyBits>(reader, last_symbol, frequencies);
}

/// What encoding a symbol needs: division by its frequency is a multiplication by a fixed reciprocal.
struct EncodeEntry {
  std::uint64_t reciprocal = 0;  ///< floor(2^63 / frequency) + 1
  std::uint32_t frequency = 0;
  std::uint32_t start = 0;  ///< sum of the frequencies of lower symbols
};
using EncodeTable = std::array<EncodeEntry, 256>;
void make_encode_table(const Frequencies& frequencies, EncodeTable& table);

/// Puts a symbol into a state; writes at most one word, downwards from `words`.
inline void encode_step(std::uint32_t& state, const EncodeEntry& entry, std::uint16_t*& words) {
  __extension__ using Wide = unsigned __int128;
  if (state >= std::uint64_t{entry.frequency} << (32 - kFrequencyBits)) {
    *--words = static_cast<std::uint16_t>(state);
    state >>= 16;
  }
  // state < 2^32 and frequency <= 2^12, so the excess state * (1 / 2^63) stays below 1 / frequency: the quotient is
  // exact.
  const auto quotient = static_cast<std::uint32_t>((Wide{state} * 2 * entry.reciprocal) >> 64);
  state += quotient * (kFrequencySum - entry.frequency) + entry.start;
}

/// One entry for each of the kFrequencySum slots: (frequency - 1) << 20 | offset in the symbol's range << 8 | symbol.
using DecodeTable = std::array<std::uint32_t, kFrequencySum>;
void make_decode_table(const Frequencies& frequencies, DecodeTable& table);

/// Takes a symbol out of a state. The caller refills the state with one word when it is below kStateFloor.
inline std::uint8_t decode_step(std::uint32_t& state, const DecodeTable& table) {
  const std::uint32_t entry = table[state & (kFrequencySum - 1)];
  state = ((entry >> 20) + 1) * (state >> kFrequencyBits) + (entry >> 8 & (kFrequencySum - 1));
  return static_cast<std::uint8_t>(entry);
}

}  // namespace quern::codec::lossless

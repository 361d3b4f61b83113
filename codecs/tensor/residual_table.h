// Frequencies of integer residuals: symbols, tables of them, how tables are stored. Small residuals are symbols with
// their sign; larger ones share a symbol with their neighbours in magnitude and leave bits open, the sign among them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/tensor/packed_bits.h"
#include "kernels/core/rans.h"
#include "kernels/core/residual_tokens.h"

namespace quern::codec::tensor {

inline constexpr unsigned kTableBits = 12;
inline constexpr std::uint32_t kTableSum = 1u << kTableBits;
inline constexpr unsigned kSignedSymbols = 31;  ///< zigzag codes of -15 .. 15
inline constexpr unsigned kEscape = kSignedSymbols + kernels::kResidualTokens - kernels::kPlainMagnitudes;
inline constexpr unsigned kSymbols = kEscape + 1;  ///< the last one: a residual no table expected, its code in full
inline constexpr std::int32_t kMaxResidual = (1 << 30) - 1;

struct ResidualSymbol {
  std::uint32_t open = 0;  ///< bits below the symbol, the sign lowest
  std::uint8_t symbol = 0;
  std::uint8_t open_bits = 0;
};

[[gnu::always_inline]] inline ResidualSymbol symbol_of(std::int32_t residual) {
  const std::uint32_t code = kernels::zigzag(static_cast<std::uint32_t>(residual));
  if (code < kSignedSymbols) return {0, static_cast<std::uint8_t>(code), 0};
  const auto sign = static_cast<std::uint32_t>(residual < 0);
  const std::uint32_t magnitude = sign != 0 ? 0u - static_cast<std::uint32_t>(residual) : residual;
  const unsigned token = kernels::token_of(magnitude);
  return {(magnitude - kernels::token_base(token)) << 1 | sign,
          static_cast<std::uint8_t>(kSignedSymbols + token - kernels::kPlainMagnitudes),
          static_cast<std::uint8_t>(kernels::token_open_bits(token) + 1)};
}

/// Bits that a symbol leaves open.
constexpr unsigned open_bits_of(unsigned symbol) {
  if (symbol < kSignedSymbols) return 0;
  if (symbol == kEscape) return 31;
  return kernels::token_open_bits(symbol - kSignedSymbols + kernels::kPlainMagnitudes) + 1;
}

/// The residual of a symbol and its open bits.
[[gnu::always_inline]] constexpr std::int32_t residual_of(unsigned symbol, std::uint32_t open) {
  if (symbol < kSignedSymbols) return static_cast<std::int32_t>(kernels::unzigzag(std::uint32_t{symbol}));
  if (symbol == kEscape) return static_cast<std::int32_t>(kernels::unzigzag(open));
  const std::uint32_t magnitude =
      kernels::token_base(symbol - kSignedSymbols + kernels::kPlainMagnitudes) + (open >> 1);
  return static_cast<std::int32_t>((open & 1) != 0 ? 0u - magnitude : magnitude);
}

using SymbolCounts = std::array<std::uint32_t, kSymbols>;
using Frequencies = std::array<std::uint16_t, kSymbols>;  ///< sum kTableSum; that of kEscape is never 0

/// Scales counts to frequencies that can be stored; depends on the counts alone.
void fit_frequencies(const SymbolCounts& counts, Frequencies& frequencies);
/// Bits, in units of 2^-12, that symbols with these counts take, open bits included.
std::uint64_t coded_cost(const SymbolCounts& counts, const Frequencies& frequencies);

void put_frequencies(const Frequencies& frequencies, BitWriter& writer);
/// False when what was read is no table.
bool get_frequencies(BitReader& reader, Frequencies& frequencies);

using EncodeTable = std::array<kernels::RansEncodeEntry, kSymbols>;
void make_encode_table(const Frequencies& frequencies, EncodeTable& table);

/// One entry for each slot: symbol, frequency - 1 from bit 8, place among the slots of the symbol from bit 20.
using DecodeTable = std::array<std::uint32_t, kTableSum>;
void make_decode_table(const Frequencies& frequencies, DecodeTable& table);

}  // namespace quern::codec::tensor

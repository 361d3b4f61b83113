// Residuals of bounded tensor modes: their symbols, and what one of eight rANS states does with one. Small residuals
// are symbols with their sign; larger ones share a symbol with their neighbours in magnitude and leave bits open, the
// sign lowest. States have 32 bits, words 16. Format: docs/format-tensor-moments.md, Residuals.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/entropy/rans.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::kernels {

inline constexpr std::size_t kTensorStates = 8;
inline constexpr unsigned kTensorSumBits = 12;
inline constexpr std::uint32_t kTensorSum = 1u << kTensorSumBits;  ///< of the frequencies of a table
inline constexpr unsigned kSignedSymbols = 31;                     ///< zigzag codes of -15 .. 15
inline constexpr unsigned kTensorEscape = kSignedSymbols + kResidualTokens - kPlainMagnitudes;
inline constexpr unsigned kTensorSymbols = kTensorEscape + 1;  ///< the last one: a residual no table expected
inline constexpr unsigned kTensorPlaces = 144;                 ///< places of a table, so that tables lie apart
inline constexpr unsigned kTensorContexts = 48;

struct TensorSymbol {
  std::uint32_t open = 0;  ///< bits below the symbol, the sign lowest
  std::uint8_t symbol = 0;
  std::uint8_t open_bits = 0;
};

[[gnu::always_inline]] constexpr TensorSymbol tensor_symbol(std::int32_t residual) {
  const std::uint32_t code = zigzag(static_cast<std::uint32_t>(residual));
  if (code < kSignedSymbols) return {0, static_cast<std::uint8_t>(code), 0};
  const auto sign = static_cast<std::uint32_t>(residual < 0);
  const std::uint32_t magnitude = sign != 0 ? 0u - static_cast<std::uint32_t>(residual) : residual;
  const unsigned token = token_of(magnitude);
  return {(magnitude - token_base(token)) << 1 | sign,
          static_cast<std::uint8_t>(kSignedSymbols + token - kPlainMagnitudes),
          static_cast<std::uint8_t>(token_open_bits(token) + 1)};
}

/// Bits that a symbol leaves open.
[[gnu::always_inline]] constexpr unsigned tensor_open_bits(unsigned symbol) {
  if (symbol < kSignedSymbols) return 0;
  if (symbol == kTensorEscape) return 31;
  return token_open_bits(symbol - kSignedSymbols + kPlainMagnitudes) + 1;
}

/// The residual of a symbol and its open bits.
[[gnu::always_inline]] constexpr std::int32_t tensor_residual(unsigned symbol, std::uint32_t open) {
  if (symbol < kSignedSymbols) return static_cast<std::int32_t>(unzigzag(std::uint32_t{symbol}));
  if (symbol == kTensorEscape) return static_cast<std::int32_t>(unzigzag(open));
  const std::uint32_t magnitude = token_base(symbol - kSignedSymbols + kPlainMagnitudes) + (open >> 1);
  return static_cast<std::int32_t>((open & 1) != 0 ? 0u - magnitude : magnitude);
}

/// The context of a level of row and column together.
[[gnu::always_inline]] constexpr unsigned tensor_context(std::int32_t level) {
  const std::int32_t half = level >> 1;
  constexpr auto kLast = static_cast<std::int32_t>(kTensorContexts) - 1;
  return static_cast<unsigned>(half < 0 ? 0 : half > kLast ? kLast : half);
}

/// What encoding takes, for each symbol. The quotient of a state below f * 2^20 by a frequency f < 2^12 is the product
/// with `reciprocal` = floor((2^(32 + k) - 1) / f), k = floor(log2 f), shifted by 32 + k, or one more: the reciprocal
/// is at most 1 below 2^(32 + k) / f, so the product lacks at most f * 2^20 / 2^(32 + k), less than 2^-11.
struct TensorEncodeEntry {
  std::uint32_t reciprocal = 0;
  std::uint32_t rest = 0;  ///< frequency, 12 bits, 0 of symbols that do not occur; k, 4 bits; start, 12 bits from 20
};
struct TensorEncodeTable {
  TensorEncodeEntry entries[kTensorPlaces];
};

/// frequency < 2^12.
[[gnu::always_inline]] constexpr TensorEncodeEntry tensor_entry(std::uint32_t frequency, std::uint32_t start) {
  if (frequency == 0) return {};
  const unsigned k = bit_length(frequency) - 1;
  return {static_cast<std::uint32_t>(((std::uint64_t{1} << (32 + k)) - 1) / frequency),
          frequency | k << 12 | start << 20};
}

/// Puts a symbol that occurs into a state; writes at most one word.
[[gnu::always_inline]] inline void tensor_put(std::uint32_t& state, const TensorEncodeEntry& entry,
                                              std::uint16_t*& words) {
  const std::uint32_t frequency = entry.rest & 0xfff;
  put_word(state, std::uint64_t{frequency} << (32 - kTensorSumBits), words);
  const auto high = static_cast<std::uint32_t>((std::uint64_t{state} * entry.reciprocal) >> 32);
  std::uint32_t quotient = high >> (entry.rest >> 12 & 15);
  quotient += static_cast<std::uint32_t>(state - quotient * frequency >= frequency);
  state += quotient * (kTensorSum - frequency) + (entry.rest >> 20);
}

/// Puts a residual into a state: open bits, then the symbol, or the escape where the table lacks it.
[[gnu::always_inline]] inline void tensor_put_residual(std::uint32_t& state, std::int32_t residual,
                                                       const TensorEncodeTable& table, std::uint16_t*& words) {
  TensorSymbol symbol = tensor_symbol(residual);
  if (table.entries[symbol.symbol].rest == 0)
    symbol = {zigzag(static_cast<std::uint32_t>(residual)), kTensorEscape,
              static_cast<std::uint8_t>(tensor_open_bits(kTensorEscape))};
  if (symbol.open_bits > kRansPlainBits) {
    rans_encode_plain(state, symbol.open >> 16, symbol.open_bits - 16u, words);
    rans_encode_plain(state, symbol.open & 0xffffu, 16, words);
  } else if (symbol.open_bits != 0) {
    rans_encode_plain(state, symbol.open, symbol.open_bits, words);
  }
  tensor_put(state, table.entries[symbol.symbol], words);
}

/// One entry for each slot: symbol, frequency - 1 from bit 8, place among the slots of the symbol from bit 20.
struct TensorDecodeTable {
  std::uint32_t entries[kTensorSum];
};

/// Takes a residual out of a state.
[[gnu::always_inline]] inline std::int32_t tensor_take_residual(RansSource& source, const TensorDecodeTable& table) {
  const std::uint32_t entry = table.entries[source.state & (kTensorSum - 1)];
  source.state = ((entry >> 8 & 0xfff) + 1) * (source.state >> kTensorSumBits) + (entry >> 20);
  source.refill();
  const unsigned symbol = entry & 0xff;
  const unsigned open_bits = tensor_open_bits(symbol);
  std::uint32_t open = 0;
  if (open_bits > kRansPlainBits) {
    open = source.take_plain(16);
    open |= source.take_plain(open_bits - 16) << 16;
  } else if (open_bits != 0) {
    open = source.take_plain(open_bits);
  }
  return tensor_residual(symbol, open);
}

static_assert(kTensorSymbols <= kTensorPlaces);

}  // namespace quern::kernels

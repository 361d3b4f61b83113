// How often each symbol occurs, counted in four tables in turn: most neighbours are the same symbol, and an addition to
// a count has to wait for the one before to the same.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "coding/distribution_fit.h"
#include "kernels/entropy/cpu/encode_streams.h"
#include "libcompress/core/arena.h"

namespace quern::coding {

class SymbolCounts {
 public:
  explicit SymbolCounts(Arena& arena) : counts_(arena.take<std::uint32_t>(kTables * kTable)) {}

  void clear() {
    for (std::size_t t = 0; t < kTables; ++t) std::fill_n(counts_ + t * kTable, bins() * kernels::kTokenStride, 0u);
    seen_ = 0;
  }
  void add(const std::uint16_t* symbols, std::size_t count) {
    std::uint32_t* const counts = counts_;
    std::uint16_t seen = 0;
    for (std::size_t x = 0; x < count; ++x) seen |= symbols[x];
    seen_ |= seen;
    std::size_t x = 0;
    for (; x + kTables <= count; x += kTables)
      for (std::size_t t = 0; t < kTables; ++t) ++counts[t * kTable + symbols[x + t]];
    for (; x < count; ++x) ++counts[symbols[x]];
  }
  /// Counts the symbols of elements but those that are `skipped` (null: none), which get kNoSymbol.
  void note(std::uint16_t* symbols, const std::uint8_t* skipped, std::size_t count) {
    if (skipped == nullptr) return add(symbols, count);
    for (std::size_t x = 0; x < count; ++x) {
      if (skipped[x] != 0) {
        symbols[x] = kernels::kNoSymbol;
      } else {
        seen_ |= symbols[x];
        ++counts_[symbols[x]];
      }
    }
  }
  /// Adds them to counts by bin and token. Returns how many there are of each token.
  TokenCounts add_to(BinCounts& counts) const {
    TokenCounts tokens{};
    for (std::size_t b = 0; b < bins(); ++b) {
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        std::uint32_t count = 0;
        for (std::size_t i = 0; i < kTables; ++i) count += counts_[i * kTable + b * kernels::kTokenStride + t];
        counts[b][t] += count;
        tokens[t] += count;
      }
    }
    return tokens;
  }

 private:
  static constexpr std::size_t kTables = 4;
  /// Not a multiple of 4096 bytes: processors take accesses that far apart for one to the same place.
  static constexpr std::size_t kTable = kernels::kContextBins * kernels::kTokenStride + 48;

  /// No symbol that was counted is of this bin or a higher one.
  std::size_t bins() const {
    return std::min(std::bit_ceil(seen_ / kernels::kTokenStride + std::size_t{1}), std::size_t{kernels::kContextBins});
  }

  std::uint32_t* counts_;
  std::size_t seen_ =
      kernels::kContextBins * kernels::kTokenStride - 1;  ///< bits of all symbols; at first the counts mean nothing
};

}  // namespace quern::coding

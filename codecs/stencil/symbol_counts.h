// How often each symbol occurs, counted in two tables in turn: most neighbours are the same symbol, and an addition to
// a count has to wait for the one before to the same.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/carver.h"
#include "codecs/stencil/model.h"
#include "codecs/stencil/residual_fit.h"
#include "codecs/stencil/residual_symbols.h"

namespace quern::codec::stencil {

class SymbolCounts {
 public:
  explicit SymbolCounts(Carver& carver)
      : first_(carver.take<std::uint32_t>(kPlaces)), second_(carver.take<std::uint32_t>(kPlaces)) {}

  void clear() {
    std::fill_n(first_, kPlaces, 0u);
    std::fill_n(second_, kPlaces, 0u);
  }
  void add(const std::uint16_t* symbols, std::size_t count) {
    std::size_t x = 0;
    for (; x + 2 <= count; x += 2) {
      ++first_[symbols[x]];
      ++second_[symbols[x + 1]];
    }
    if (x < count) ++first_[symbols[x]];
  }
  /// Counts the symbols of elements but those that are `skipped` (null: none), which get kNoSymbol.
  void note(std::uint16_t* symbols, const std::uint8_t* skipped, std::size_t count) {
    if (skipped == nullptr) return add(symbols, count);
    for (std::size_t x = 0; x < count; ++x) {
      if (skipped[x] != 0) {
        symbols[x] = kNoSymbol;
      } else {
        ++first_[symbols[x]];
      }
    }
  }
  using Tokens = std::array<std::uint32_t, kernels::kResidualTokens>;
  /// Adds them to counts by level and token. Returns how many there are of each token.
  Tokens add_to(LevelCounts& counts) const {
    Tokens tokens{};
    for (std::size_t l = 0; l < kLevels; ++l) {
      const std::uint32_t* const first = first_ + l * kTokenPlaces;
      const std::uint32_t* const second = second_ + l * kTokenPlaces;
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        counts[l][t] += first[t] + second[t];
        tokens[t] += first[t] + second[t];
      }
    }
    return tokens;
  }

 private:
  static constexpr std::size_t kPlaces = kLevels * kTokenPlaces;
  std::uint32_t* first_;
  std::uint32_t* second_;
};

}  // namespace quern::codec::stencil

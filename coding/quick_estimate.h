// What codes would cost with contexts, told quickly: tokens by the two codes before them in the row.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "coding/token_cost.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::coding {

class QuickEstimate {
 public:
  /// `skipped`: elements that are not 0 there cost nothing and count as 0; null: none.
  void add_row(const std::int32_t* codes, const std::uint8_t* skipped, std::size_t columns) {
    std::uint32_t last = 0;
    std::uint32_t before = 0;
    for (std::size_t x = 0; x < columns; ++x) {
      const bool no_code = skipped != nullptr && skipped[x] != 0;
      const auto magnitude = no_code ? 0u : static_cast<std::uint32_t>(codes[x] < 0 ? -codes[x] : codes[x]);
      if (!no_code) ++counts_[context(last, before)][kernels::token_of(magnitude)];
      before = last;
      last = std::min(magnitude, kMost);
    }
  }

  /// Bits, in units of 2^-12; a context costs about what a distribution does.
  std::uint64_t bits() const {
    std::uint64_t sum = 0;
    for (const TokenCounts& counts : counts_) sum += token_cost(counts);
    return sum;
  }
  std::uint64_t elems() const {
    std::uint64_t n = 0;
    for (const TokenCounts& counts : counts_)
      for (const std::uint32_t c : counts) n += c;
    return n;
  }

 private:
  static constexpr std::uint32_t kMost = 1u << 20;
  static constexpr std::size_t kContexts = 12;

  static std::size_t context(std::uint32_t last, std::uint32_t before) {
    return std::min<std::size_t>(kContexts - 1, static_cast<std::size_t>(std::bit_width(2 * last + before)));
  }

  std::array<TokenCounts, kContexts> counts_{};
};

}  // namespace quern::coding

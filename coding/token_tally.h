// How often each token occurs among codes. Counted in four tables in turn: most neighbours have the same token, and an
// addition to a count has to wait for the one before to the same.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "coding/token_cost.h"
#include "kernels/entropy/cpu/residual_kernels.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::coding {

class TokenTally {
 public:
  void clear() {
    for (TokenCounts& counts : counts_) counts.fill(0);
  }

  /// `skipped`: elements that are not 0 there are left out; null: none.
  void add(const kernels::ResidualKernels& kernels, const std::int32_t* codes, const std::uint8_t* skipped,
           std::size_t count) {
    constexpr std::size_t kBlock = 256;
    static constexpr std::array<std::uint32_t, kBlock> kNoSums{};  // symbols of one bin
    std::array<std::uint16_t, kBlock> symbols;                     // NOLINT: set below
    const auto token = [&](std::size_t x) { return symbols[x] % kernels::kTokenStride; };
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
      const std::size_t size = std::min(kBlock, count - begin);
      kernels.symbols(kNoSums.data(), codes + begin, size, symbols.data());
      std::size_t x = 0;
      if (skipped == nullptr)
        for (; x + kTables <= size; x += kTables)
          for (std::size_t t = 0; t < kTables; ++t) ++counts_[t][token(x + t)];
      for (; x < size; ++x)
        if (skipped == nullptr || skipped[begin + x] == 0) ++counts_[0][token(x)];
    }
  }

  TokenCounts counts() const {
    TokenCounts sum = counts_[0];
    for (std::size_t t = 1; t < kTables; ++t)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += counts_[t][i];
    return sum;
  }

 private:
  static constexpr std::size_t kTables = 4;
  std::array<TokenCounts, kTables> counts_{};
};

}  // namespace quern::coding

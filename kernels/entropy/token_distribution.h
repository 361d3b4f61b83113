// Frequencies of residual tokens from a few numbers: a residual before rounding follows Student's t distribution of a
// given shape and scale; how often it is zero is given by itself. Everything after the table below is integers.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/log2_fixed.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::kernels {

inline constexpr unsigned kFrequencySumBits = 15;
inline constexpr std::uint32_t kFrequencySum = 1u << kFrequencySumBits;

/// Shape k has density (1 + x^2/nu)^-e with nu = 2e - 1; e = 32 is nearly a normal distribution.
inline constexpr std::array<unsigned, 8> kTailExponents{1, 2, 3, 4, 6, 10, 16, 32};
inline constexpr int kTailStepsPerOctave = 16;
inline constexpr int kTailLowest = -7 * kTailStepsPerOctave;  ///< x = 2^-7
inline constexpr int kTailHighest = 13 * kTailStepsPerOctave;
inline constexpr std::uint32_t kTailOne = 1u << 24;

namespace detail {

inline constexpr std::size_t kTailEntries = static_cast<std::size_t>(kTailHighest - kTailLowest) + 1;
using TailTable = std::array<std::array<std::uint32_t, kTailEntries>, kTailExponents.size()>;

constexpr double tail_density(double x, unsigned exponent) {
  const double base = 1 / (1 + x * x / (2 * exponent - 1));
  double power = 1;
  for (unsigned i = 0; i < exponent; ++i) power = power * base;
  return power;
}

/// Probability that |x| exceeds 2^(i/16 - 7), by Simpson's rule over each step; separately rounded IEEE operations, so
/// the same everywhere.
constexpr TailTable make_tail_table() {
  TailTable table{};
  for (std::size_t shape = 0; shape < kTailExponents.size(); ++shape) {
    const unsigned exponent = kTailExponents[shape];
    std::array<double, kTailEntries> below{};
    double x = 0x1p-7;
    double sum = x * (tail_density(0, exponent) + 4 * tail_density(x / 2, exponent) + tail_density(x, exponent)) / 6;
    for (std::size_t i = 0; i < kTailEntries; ++i) {
      below[i] = sum;
      const double next =
          i % 16 == 15 ? 0x1p-7 * static_cast<double>(std::uint64_t{2} << (i / 16)) : x * 0x1.0b5586cf9890fp+0;
      const double middle = (x + next) / 2;
      sum = sum + (next - x) *
                      (tail_density(x, exponent) + 4 * tail_density(middle, exponent) + tail_density(next, exponent)) /
                      6;
      x = next;
    }
    const double whole = below[kTailEntries - 1];
    for (std::size_t i = 0; i < kTailEntries; ++i)
      table[shape][i] = static_cast<std::uint32_t>((1 - below[i] / whole) * kTailOne + 0.5);
  }
  return table;
}
inline constexpr TailTable kTails = make_tail_table();

}  // namespace detail

/// How the tokens of one context are distributed.
struct TokenDistribution {
  std::uint8_t tokens = 0;  ///< at most kResidualTokens; tokens from here on do not occur. 0: an unused distribution
  std::uint8_t shape = 0;   ///< index into kTailExponents
  std::uint8_t scale = 0;   ///< the distribution's scale is 2^(scale/8 - 4) codes
  std::uint16_t zero = 0;   ///< frequency of token 0; 1 .. kFrequencySum - (tokens - 1) if tokens > 1
};
inline constexpr unsigned kMaxScale = 255;

/// What scales take from logarithms of 2m - 1 to give places in a table of tails, in units of 1/256 step.
constexpr int tail_offset(unsigned scale) {
  // of log2((m - 1/2) / 2^(scale/8 - 4)) in units of 2^-12
  return 4096 + (static_cast<int>(scale) - 32) * 512 + kTailLowest * 256;
}
/// Probability, in units of 2^-24, of magnitudes above a place in a shape's table.
constexpr std::uint32_t tail_at(unsigned shape, int at) {
  const auto& tails = detail::kTails[shape];
  if (at >= static_cast<int>(detail::kTailEntries - 1) * 256) return 0;
  if (at < 0) {
    // Density is flat below the table: the tail falls in proportion to the magnitude.
    const int octaves = -at / 4096;
    return octaves > 24 ? kTailOne : kTailOne - ((kTailOne - tails[0]) >> octaves);
  }
  const std::uint32_t low = tails[static_cast<std::size_t>(at >> 8)];
  const std::uint32_t high = tails[static_cast<std::size_t>(at >> 8) + 1];
  return low - static_cast<std::uint32_t>((std::uint64_t{low - high} * static_cast<unsigned>(at & 255)) >> 8);
}
/// Probability, in units of 2^-24, that the distribution's magnitude exceeds (2m - 1) / 2 codes; m >= 1.
constexpr std::uint32_t tail_above(unsigned shape, unsigned scale, std::uint32_t m) {
  return tail_at(shape, static_cast<int>(log2_fixed(2 * m - 1)) - tail_offset(scale));
}

using TokenStarts = std::array<std::uint16_t, kResidualTokens + 1>;

/// starts[t] = sum of the frequencies of tokens below t, for t <= model.tokens; every token has at least 1. The entry
/// at model.tokens stands for 2^15 (it fits 16 bits).
constexpr void fill_token_starts(const TokenDistribution& model, TokenStarts& starts) {
  starts[0] = 0;
  starts[model.tokens] = static_cast<std::uint16_t>(kFrequencySum);
  if (model.tokens == 1) return;
  starts[1] = model.zero;
  const std::uint32_t least = model.tokens - 1u;
  const std::uint32_t shared = kFrequencySum - model.zero - least;
  const std::uint32_t whole = tail_above(model.shape, model.scale, 1);
  for (unsigned t = 2; t < model.tokens; ++t) {
    const std::uint32_t above = tail_above(model.shape, model.scale, token_base(t));
    const std::uint32_t passed =
        whole == 0 ? shared : static_cast<std::uint32_t>(std::uint64_t{shared} * (whole - above) / whole);
    starts[t] = static_cast<std::uint16_t>(model.zero + (t - 1) + passed);
  }
}

}  // namespace quern::kernels

// Contexts and probabilities of masks that are coded by levels (docs/format-mask.md, section 10). Counts adapt between
// batches of symbols, never within one, so that the symbols of a batch can be coded side by side. Host and device code
// use it alike.
#pragma once

#include <cstdint>

namespace quern::kernels {

/// Numbers of the contexts. Sets: three for each class of distances between known cells, one for each phase.
namespace level_contexts {
inline constexpr unsigned kDistances = 3;  // 1, 2, more
inline constexpr unsigned kPhases = 3;
inline constexpr unsigned kSets = kDistances * kPhases;
inline constexpr unsigned kQuietClasses = 5;  // without a reference; with one, by its value and whether sides agree
inline constexpr unsigned kDiffers = 0;       // whether a plane differs from its reference, by the answer before
inline constexpr unsigned kBase = kDiffers + 2;
inline constexpr unsigned kBaseReference = kBase + 1;
inline constexpr unsigned kFlat = kBaseReference + 2 * 9;
inline constexpr unsigned kGroup = kFlat + kSets * 128;
inline constexpr unsigned kWord = kGroup + kQuietClasses * kDistances;
inline constexpr unsigned kQuiet = kWord + kQuietClasses * kDistances;
inline constexpr unsigned kCoarse = kQuiet + kSets * kQuietClasses;
inline constexpr unsigned kCount = kCoarse + 2 * 4 * 4 * 5 * 2;
inline constexpr unsigned kFineCount = 2 * kPhases * 7 * 4 * 5 * 3 * 2;
}  // namespace level_contexts

/// Probabilities are numbers of 4096ths.
inline constexpr unsigned kLevelProbabilityBits = 12;
inline constexpr std::uint32_t kLevelOne = 1U << kLevelProbabilityBits;

/// How often each symbol was seen, in sixteenths of a symbol.
struct LevelCounts {
  static constexpr unsigned kSymbol = 16;
  static constexpr unsigned kMost = 4080;
  std::uint16_t zeros = 0;
  std::uint16_t ones = 0;

  constexpr unsigned all() const { return zeros + 0U + ones; }
  /// After a batch with so many symbols of each kind.
  constexpr void add(unsigned more_zeros, unsigned more_ones) {
    unsigned z = zeros + more_zeros * kSymbol, o = ones + more_ones * kSymbol;
    while (z + o > kMost) {
      z -= z / 2;
      o -= o / 2;
    }
    zeros = static_cast<std::uint16_t>(z);
    ones = static_cast<std::uint16_t>(o);
  }
};

[[gnu::always_inline]] constexpr std::uint32_t bounded_probability(std::uint32_t p) {
  return p < 1 ? 1 : p > kLevelOne - 1 ? kLevelOne - 1 : p;
}
/// Of a one, by counts that are not both 0.
[[gnu::always_inline]] constexpr std::uint32_t level_probability(const LevelCounts& c) {
  return bounded_probability((c.ones * kLevelOne + c.all() / 2) / c.all());
}
/// Of a one in a fine context, whose counts begin at 0 and lean on six symbols of the probability of a coarse one.
[[gnu::always_inline]] constexpr std::uint32_t fine_probability(const LevelCounts& c, std::uint32_t coarse) {
  constexpr std::uint32_t kLean = 6 * LevelCounts::kSymbol;
  return bounded_probability((c.ones * kLevelOne + kLean * coarse) / (c.all() + kLean));
}

/// What contexts begin with: zeros, ones, in sixteenths of a symbol.
struct LevelConstants {
  std::uint8_t counts[level_contexts::kCount][2];

  constexpr LevelCounts of(unsigned context) const { return {counts[context][0], counts[context][1]}; }
};

/// Sizes of batches: they grow with the number of symbols before.
class LevelBatches {
 public:
  constexpr std::uint64_t next() const {
    constexpr std::uint64_t kFewest = 64, kMost = 2048, kShare = 64, kStep = 32;
    const std::uint64_t grown = done_ / kShare / kStep * kStep;
    return grown < kFewest ? kFewest : grown > kMost ? kMost : grown;
  }
  constexpr void took(std::uint64_t symbols) { done_ += symbols; }
  constexpr std::uint64_t done() const { return done_; }

 private:
  std::uint64_t done_ = 0;
};

}  // namespace quern::kernels

// Codes of a staged tile of binary32 under an absolute bound, for a warp, over an execution model X. A code is the
// pattern of a float: kZeroPattern for code 0, one more for each code. Whether elements keep their bound is checked one
// by one only where codes are larger than those that the step was proved for (QuantizerParams::promised).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/common/quantize.h"
#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/warp/staged_tile.h"

namespace quern::kernels {

/// What an encoder of staged tiles needs of ChunkRules, in as few words as possible.
struct StagedRules {
  float reciprocal = 0;
  float step = 0;
  float strict = 0;
  std::uint32_t promised = 0;
  std::uint32_t candidates = 0;  ///< a byte each, the first lowest
  std::uint32_t candidate_count = 0;

  [[gnu::always_inline]] static constexpr StagedRules of(const ChunkRules& rules) {
    StagedRules out;
    out.reciprocal = static_cast<float>(rules.params.reciprocal);
    out.step = static_cast<float>(rules.params.step);
    out.strict = static_cast<float>(rules.params.strict);
    out.promised = static_cast<std::uint32_t>(rules.params.promised);
    unroll<kMaxCandidates>(
        [&](auto c) { out.candidates |= static_cast<std::uint32_t>(rules.candidates[c]) << (8 * c); });
    out.candidate_count = rules.candidate_count == 0 ? 1 : static_cast<std::uint32_t>(rules.candidate_count);
    return out;
  }
  [[gnu::always_inline]] constexpr Predictor candidate(std::uint32_t c) const {
    return static_cast<Predictor>(candidates >> (8 * c) & 0xff);
  }
};

/// How far apart the codes of a tile are: whether residuals fit 16 bits under every predictor, or whether the tile is
/// for another encoder because some element may be an exception.
enum class CodeSpread : std::uint8_t { refused, narrow, wide };

/// A residual is a sum of at most eight codes, half of them subtracted: less than 2^15 in magnitude.
inline constexpr std::uint32_t kMostNarrowSpread = 8191;

/// Least and greatest code of a tile.
struct CodeRange {
  std::uint32_t low = 0;
  std::uint32_t high = 0;

  [[gnu::always_inline]] constexpr CodeSpread spread() const {
    return high - low <= kMostNarrowSpread ? CodeSpread::narrow : CodeSpread::wide;
  }
};

/// Whether every element keeps its bound. Rolled and apart from the codes, which it does not keep registers from.
template <class X>
constexpr bool verify_staged(const StagedRules& rules, const std::uint32_t* stage) {
  typename X::template vec<bool> refused;
  X::lanes([&](auto lane) {
    bool good = true;
    in_eights(0, kRows, [&](unsigned run) {
      const auto x = std::bit_cast<float>(X::load(stage + kLanes * run + static_cast<unsigned>(lane), lane));
      const float shifted = x * rules.reciprocal + kRoundingShift32;
      const float difference = x - (shifted - kRoundingShift32) * rules.step;
      good = (__builtin_fabsf(difference) < rules.strict) & good;
    });
    X::set(refused, lane, !good);
  });
  return !X::any(refused);
}

/// Quantizes a staged tile. The codes of a refused tile are undefined.
template <class X, TileShape S, class V>
constexpr CodeSpread read_patterns(const StagedRules& rules, const std::uint32_t* stage, V (&codes)[kRows],
                                   CodeRange& range) {
  constexpr std::uint32_t kZero = kRoundingBits32;
  constexpr std::uint32_t kFarthest = (1u << 22) - 1;
  V low, high;
  typename X::template vec<bool> minus_zero;
  load_column<X, S>(stage, codes);
  X::lanes([&](auto lane) {
    std::uint32_t least = 0xffffffffu, greatest = 0;
    std::int32_t least_value = 0;
    unroll<kRows / 2>([&](auto i) {
      std::uint32_t value[2], code[2];
      unroll<2>([&](auto k) {
        value[k] = X::get(codes[2 * i + k], lane);
        code[k] = std::bit_cast<std::uint32_t>(std::bit_cast<float>(value[k]) * rules.reciprocal + kRoundingShift32);
        X::set(codes[2 * i + k], lane, code[k]);
      });
      least_value =
          X::least_signed(least_value, static_cast<std::int32_t>(value[0]), static_cast<std::int32_t>(value[1]));
      least = X::least(least, code[0], code[1]);
      greatest = X::greatest(greatest, code[0], code[1]);
    });
    X::set(low, lane, least);
    X::set(high, lane, greatest);
    X::set(minus_zero, lane, static_cast<std::uint32_t>(least_value) == Binary32::kMinusZero);
  });
  range = {X::reduce_min(low), X::reduce_max(high)};
  if (X::any(minus_zero)) return CodeSpread::refused;
  const auto within = [&](std::uint32_t most) { return range.low + most >= kZero && range.high <= kZero + most; };
  if (rules.promised != 0 && within(rules.promised)) return range.spread();
  if (!within(kFarthest) || !verify_staged<X>(rules, stage)) return CodeSpread::refused;
  return range.spread();
}

}  // namespace quern::kernels

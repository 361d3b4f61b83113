// Moments of Adam at rest: codes of fixed width that are rewritten at each step. A block of 256 values has one header.
//
//   second moment   the top bits of its binary32 pattern, so a code is a small floating-point number: code 0 is 0, code
//                   c > 0 is the pattern (first + c - 1) << shift. Neighbours differ by at most a quarter (8 bits).
//   first moment    an integer times scale * unit, where unit is the root of the decoded second moment by a line between
//                   powers of 4: at least the root, at most 1.061 times it, and no root has to be computed.
//
// Both are rounded to one of their two neighbours by a hash of (seed, step, index), so that the mean over steps is the
// value itself: rounding to nearest would never see a decay smaller than half a step. Every function here is integer
// arithmetic or separately rounded binary32, and gives the same bits on every machine. docs/offload.md has the bounds.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/common/round_to_integer.h"

namespace quern::kernels {

inline constexpr std::size_t kAtRestBlock = 256;  ///< values of a block
inline constexpr std::size_t kAtRestTileBlocks = 64;
inline constexpr std::size_t kAtRestTile = kAtRestBlock * kAtRestTileBlocks;  ///< values of a tile: one task

/// How a block is stored. Numbers are stored.
enum class AtRestKind : std::uint8_t {
  narrow = 0,  ///< codes of the form's own width, in the block's slot
  wide = 1,    ///< 8-bit codes beside the slots, in forms of 4 bits
  raw = 2,     ///< both moments as they are, beside the slots: NaN, infinities, -0, denormal or negative second moments
};

/// The header of a block: what its codes mean.
struct AtRestHeader {
  std::uint32_t first = 0;  ///< code 1 of second moments is this << shift; 16 bits
  std::uint32_t shift = 21;
  std::uint32_t scale = 0;  ///< of first moments, see at_rest_scale(); 8 bits
  AtRestKind kind = AtRestKind::narrow;
};

[[gnu::always_inline]] constexpr std::uint32_t pack_at_rest_header(const AtRestHeader& h) {
  return h.first | h.shift << 16 | h.scale << 21 | static_cast<std::uint32_t>(h.kind) << 29;
}
[[gnu::always_inline]] constexpr AtRestHeader unpack_at_rest_header(std::uint32_t bits) {
  return {bits & 0xffffu, bits >> 16 & 31u, bits >> 21 & 255u, static_cast<AtRestKind>(bits >> 29 & 3u)};
}

/// Scales are numbers with three fraction bits from 2^-26 on; field 0 is 2^-26.
inline constexpr std::uint32_t kAtRestScaleBias = (127 - 26) << 3;
[[gnu::always_inline]] constexpr float at_rest_scale(std::uint32_t field) {
  return std::bit_cast<float>((field + kAtRestScaleBias) << 20);
}
/// The smallest scale that holds quotients of first moments and units up to `most`, with codes up to `limit`; 256 when there is none.
[[gnu::always_inline]] constexpr std::uint32_t at_rest_scale_field(float most, std::uint32_t limit) {
  // The factor is above 1 / limit by more than all roundings, so no code is beyond `limit`.
  const float needed = most * ((1.0f + 0x1p-20f) / static_cast<float>(limit));
  const std::uint32_t top = (std::bit_cast<std::uint32_t>(needed) + 0xfffffu) >> 20;
  if (top <= kAtRestScaleBias) return 0;
  return top - kAtRestScaleBias < 256 ? top - kAtRestScaleBias : 256;
}

/// How codes of one width are made. Shifts are 23 less the fraction bits that a code of a second moment keeps; the
/// largest scale of first moments is a field of the header.
template <unsigned Bits>
struct AtRestWidth;
/// 8 bits: neighbours of second moments differ by at most a quarter, a step of first moments is less than 0.1 roots.
template <>
struct AtRestWidth<8> {
  static constexpr std::uint32_t kFinestShift = 18;
  static constexpr std::uint32_t kCoarsestShift = 21;
  static constexpr std::uint32_t kMostScale = ((127 - 4) << 3 | 4) - kAtRestScaleBias;
};
/// 4 bits: by at most a factor of 4, and less than 0.5 roots.
template <>
struct AtRestWidth<4> {
  static constexpr std::uint32_t kFinestShift = 20;
  static constexpr std::uint32_t kCoarsestShift = 24;
  static constexpr std::uint32_t kMostScale = ((127 - 2) << 3 | 7) - kAtRestScaleBias;
};

/// 64 bits from 64 (splitmix64's finalizer).
[[gnu::always_inline]] constexpr std::uint64_t at_rest_mix64(std::uint64_t x) {
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}
/// What the hashes of a block begin with; `key` stands for seed and step, `block` counts in the whole parameter space.
[[gnu::always_inline]] constexpr std::uint32_t at_rest_block_key(std::uint64_t key, std::uint64_t block) {
  return static_cast<std::uint32_t>(at_rest_mix64(key ^ at_rest_mix64(block)));
}
/// The random bits of value `i` of a block, for its second moment.
[[gnu::always_inline]] constexpr std::uint32_t at_rest_bits(std::uint32_t block_key, std::uint32_t i) {
  std::uint32_t x = block_key + i * 0x9E3779B1u;
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}
/// For its first moment: a number in [-1/2, 1/2) whose leading bits no second moment uses.
[[gnu::always_inline]] constexpr float at_rest_offset(std::uint32_t bits) {
  return static_cast<float>(static_cast<std::int32_t>(bits >> 8) - (1 << 23)) * 0x1p-24f;
}

/// The unit of first moments, of the pattern of a decoded second moment v: sqrt(v) <= unit <= 1.061 sqrt(v), the
/// pattern halved. Where v is 0 some number that is not 0; the first moment is 0 then.
[[gnu::always_inline]] constexpr float at_rest_unit(std::uint32_t second) {
  return std::bit_cast<float>((second >> 1) + (127u << 22));
}

/// Second moments that codes can hold are 0 or patterns from the first of these to below the second: normal, and their
/// upper neighbour is finite.
inline constexpr std::uint32_t kAtRestLeast = 0x00800000u;
inline constexpr std::uint32_t kAtRestTooLarge = 0x7f000000u;

/// The code of a second moment, relative to pattern 0: 0 for 0. Values and their neighbours of a binade are evenly
/// spaced patterns, so adding random bits below the step rounds without bias.
[[gnu::always_inline]] constexpr std::uint32_t at_rest_second_code(std::uint32_t pattern, std::uint32_t shift,
                                                                   std::uint32_t random) {
  return pattern == 0 ? 0 : (pattern + (random & ((1u << shift) - 1u))) >> shift;
}

/// The same where neighbours are not of one binade: by their values.
[[gnu::always_inline]] constexpr std::uint32_t at_rest_second_code_far(std::uint32_t pattern, std::uint32_t shift,
                                                                       std::uint32_t random) {
  const std::uint32_t code = pattern >> shift;
  const float below = std::bit_cast<float>(code << shift);
  const float above = std::bit_cast<float>((code + 1) << shift);
  const float share = static_cast<float>(static_cast<std::int32_t>(random & 0x7fffffu)) * 0x1p-23f;
  const bool up = std::bit_cast<float>(pattern) - below > share * (above - below);
  return pattern == 0 ? 0 : code + static_cast<std::uint32_t>(up);
}

/// The code of a first moment: one of its two neighbours, less than a step away for certain. `quotient` is first / step
/// but for a few roundings, so the check is made with the decoder's product.
[[gnu::always_inline]] constexpr std::int32_t at_rest_first_code(float first, float quotient, float step,
                                                                 float offset) {
  const std::int32_t code = nearest_integer(quotient + offset);
  const float off = static_cast<float>(code) * step - first;
  return code - static_cast<std::int32_t>(off >= step) + static_cast<std::int32_t>(off <= -step);
}

}  // namespace quern::kernels

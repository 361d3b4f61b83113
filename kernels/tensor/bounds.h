// Arithmetic of the bounded tensor modes updq and ebq, element by element: what an encoder tries, and what a decoder
// makes of a code. Format: docs/format-tensor-moments.md, chapters 3 and 4.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/round_to_integer.h"

namespace quern::kernels {

inline constexpr std::uint32_t kFloatOne = 0x3f800000u;
inline constexpr std::uint32_t kFloatMinusZero = 0x80000000u;
inline constexpr std::int32_t kMaxUpdateCode = 1 << 20;
inline constexpr std::int32_t kMaxStepCode = 1 << 21;

[[gnu::always_inline]] constexpr bool is_finite_pattern(std::uint32_t bits) {
  return (bits & 0x7fffffffu) < 0x7f800000u;
}
/// Positive, finite and not zero.
[[gnu::always_inline]] constexpr bool is_positive_pattern(std::uint32_t bits) { return bits - 1 < 0x7f7fffffu; }

/// A quotient kept within +-kMaxUpdateCode and rounded.
[[gnu::always_inline]] constexpr std::int32_t bounded_code(float quotient) {
  constexpr auto kMost = static_cast<float>(kMaxUpdateCode);
  // By masks, which compilers make vectors of.
  const auto choose = [](bool yes, float a, float b) {
    const std::uint32_t mask = 0u - static_cast<std::uint32_t>(yes);
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(a) & mask) | (std::bit_cast<std::uint32_t>(b) & ~mask));
  };
  const float above = choose(quotient < -kMost, -kMost, quotient);
  return nearest_integer(choose(above > kMost, kMost, above));
}

/// What weights are coded with.
struct StepUnit {
  float step = 0;
  double bound = 0;
};

}  // namespace quern::kernels

// Every number of a network of whole numbers is made by these functions: CPU and device call them.
#pragma once

#include <cstdint>

#include "kernels/network/network.h"

namespace quern::kernels {

/// Largest magnitude of a number of that many bits.
[[gnu::always_inline]] constexpr std::int32_t activation_limit(unsigned bits) {
  return (std::int32_t{1} << (bits - 1)) - 1;
}

[[gnu::always_inline]] constexpr std::int16_t clamp_activation(std::int64_t v, std::int32_t limit) {
  return static_cast<std::int16_t>(v < -limit ? -limit : v > limit ? limit : v);
}

/// A sum of products as a number of the next tensor: times the multiplier, by 2^shift to the nearest (ties upwards),
/// activated, and kept within the limit.
[[gnu::always_inline]] constexpr std::int16_t rescaled(std::int32_t sum, std::int32_t multiplier, unsigned shift,
                                                       Activation activation, std::int32_t limit) {
  const std::int64_t product = std::int64_t{sum} * multiplier;
  std::int64_t v = (product + (std::int64_t{1} << (shift - 1))) >> shift;
  if (activation == Activation::relu) v = v > 0 ? v : 0;
  if (activation == Activation::leaky) v = v > 0 ? v : v >> 3;
  return clamp_activation(v, limit);
}

}  // namespace quern::kernels

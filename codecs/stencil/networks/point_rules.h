// Every number between values and a network of super-resolution is made by these functions. Integers alone: the same on
// every machine. Specified in docs/format-stencil.md, "Networks".
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace quern::codec::stencil {

/// Larger values count as this, so that no sum overflows whatever a decoder gets.
inline constexpr std::int64_t kMostNetworkValue = std::int64_t{1} << 44;
inline constexpr unsigned kNetworkInputBits = 12;       ///< of fraction
inline constexpr unsigned kNetworkOutputBits = 15;      ///< of fraction
inline constexpr std::int64_t kNetworkScaleStep = 512;  ///< of the input that tells the scale

/// The mean of the values at a distance of 1, of which there are 2, 4 or 6, rounded down.
constexpr std::int64_t network_base(std::int64_t sum, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  return sum >= 0 ? sum / n : -((-sum + n - 1) / n);
}

/// About the logarithm of the mean distance of `taps` values from the base, by the sum of all.
constexpr unsigned network_scale(std::uint64_t sum, std::size_t taps) {
  const auto width = static_cast<unsigned>(std::bit_width(sum));
  const auto share = static_cast<unsigned>(std::bit_width(taps)) - 1;
  return width > share ? width - share : 0;
}

/// A distance from the base as an input.
constexpr std::int16_t network_input(std::int64_t distance, unsigned scale) {
  return static_cast<std::int16_t>(
      std::clamp<std::int64_t>(distance * (std::int64_t{1} << kNetworkInputBits) >> scale, -32767, 32767));
}

/// The last input: the scale over the bound.
constexpr std::int16_t network_scale_input(unsigned scale, unsigned fraction_bits) {
  return static_cast<std::int16_t>((std::int64_t{scale} - fraction_bits) * kNetworkScaleStep);
}

/// The value that a network's output stands for.
constexpr std::int64_t network_value(std::int64_t base, std::int16_t output, unsigned scale) {
  constexpr std::int64_t kHalf = std::int64_t{1} << (kNetworkOutputBits - 1);
  return base + ((output * (std::int64_t{1} << scale) + kHalf) >> kNetworkOutputBits);
}

}  // namespace quern::codec::stencil

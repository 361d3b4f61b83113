// Made-up fields with fronts: smooth nearly everywhere, steep in places.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quern::codec::stencil::test {

/// A hyperbolic tangent of `steepness` times waves of five octaves, the longest of about half a `period`, in a cube of
/// `extent` elements along each axis. Numbers of the waves come from Weyl's sequence.
inline std::vector<double> fronts(std::size_t extent, unsigned seed, std::size_t period, double steepness) {
  std::uint64_t count = 0;
  const auto next = [&] {
    const double x = 0.6180339887498949 * static_cast<double>(100 * seed + ++count);
    return x - std::floor(x);
  };
  std::vector<double> field(extent * extent * extent);
  std::vector<double> along[3];
  for (unsigned octave = 0; octave < 5; ++octave) {
    for (unsigned wave = 0; wave < 2; ++wave) {
      for (auto& axis : along) {
        const double k = std::ldexp(0.6 + 0.8 * next(), static_cast<int>(octave) + 1) * 2 * 3.141592653589793 /
                         static_cast<double>(period);
        const double phase = 6.28 * next();
        axis.resize(extent);
        for (std::size_t i = 0; i < extent; ++i) axis[i] = std::sin(k * static_cast<double>(i) + phase);
      }
      const double amplitude = std::pow(2.0, -1.4 * octave);
      for (std::size_t i = 0; i < field.size(); ++i)
        field[i] += amplitude * along[0][i / extent / extent] * along[1][i / extent % extent] * along[2][i % extent];
    }
  }
  for (double& v : field) v = std::tanh(steepness * v);
  return field;
}

/// One period, gently sloped.
inline std::vector<double> fronts(std::size_t extent, unsigned seed) { return fronts(extent, seed, extent, 2); }

/// Distance of the largest value from the smallest.
inline double width(const std::vector<double>& field) {
  const auto [low, high] = std::minmax_element(field.begin(), field.end());
  return *high - *low;
}

}  // namespace quern::codec::stencil::test

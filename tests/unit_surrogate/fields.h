// Small arrays for the tests, made from a fixed sequence of numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <quern/array.h>

namespace quern::test {

/// Waves of a few wavelengths and normal noise of the deviation given.
inline std::vector<float> waves(std::uint64_t nz, std::uint64_t ny, std::uint64_t nx, double noise) {
  std::mt19937 source(20261127);
  std::vector<float> out;
  for (std::uint64_t z = 0; z < nz; ++z)
    for (std::uint64_t y = 0; y < ny; ++y)
      for (std::uint64_t x = 0; x < nx; ++x) {
        // A sum of twelve uniform numbers; the standard's distributions differ between libraries.
        double normal = -6;
        for (int i = 0; i < 12; ++i) normal += static_cast<double>(source()) * 0x1p-32;
        const double wave = std::sin(0.11 * static_cast<double>(x)) + std::cos(0.07 * static_cast<double>(y)) +
                            std::sin(0.05 * static_cast<double>(z + x));
        out.push_back(static_cast<float>(wave + noise * normal));
      }
  return out;
}

inline ArrayView view(const std::vector<float>& values, const char* shape) {
  return {values.data(), DType::f32, Shape::parse(shape).value()};
}

}  // namespace quern::test

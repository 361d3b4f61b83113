// Values that tests of coding/ encode.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "tests/unit_coding/delta_codec.h"

namespace quern::coding::test {

/// A step whose multiples doubles hold exactly.
inline ValueFormat sample_format() { return {-12.5, 0x1p-7, 0}; }

/// Smooth rows with noise, and now and then a jump of up to `jump` steps.
inline std::vector<double> sample_values(const Grid& grid, unsigned seed, double jump = 1000) {
  std::mt19937 random(seed);
  std::vector<double> values(grid.elems());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double smooth =
        4 * std::sin(static_cast<double>(i % grid.columns) * 0.01) + static_cast<double>(random() % 64) / 64;
    const double jumps = random() % 97 == 0 ? jump * static_cast<double>(random() % 1000) / 1000 : 0;
    values[i] = smooth + jumps * sample_format().step;
  }
  return values;
}

}  // namespace quern::coding::test

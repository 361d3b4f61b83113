// Chunks whose reconstructed numbers are integers that number places of a lattice: what the elements are.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/common/number_elements.h"

namespace quern::kernels {

/// Spacing 0: there is none, and numbers are elements.
struct JobLattice {
  double origin = 0;
  double spacing = 0;

  /// The value of place `n`; product and sum are rounded separately.
  [[gnu::always_inline]] constexpr double value(double n) const { return n * spacing + origin; }
  /// What a reconstructed number stands for: itself, or the place of the integer of 32 bits that it is rounded to.
  [[gnu::always_inline]] constexpr double element(double number) const {
    return spacing == 0 ? number : value(Int<std::int32_t>::value(Int<std::int32_t>::bits(number)));
  }
};

}  // namespace quern::kernels

// round_to_integer.h for vectors of GCC: element by element the same results. Vectors pass by reference, as how they
// are returned differs between instruction sets.
#pragma once

#include "kernels/common/round_to_integer.h"

namespace quern::kernels {

/// nearest() of each element.
template <class Doubles>
[[gnu::always_inline]] inline void round_vector(const Doubles& v, Doubles& out) {
  out = (v + kRoundingShift64) - kRoundingShift64;
}

/// nearest_integer() of each element; `Longs` are as many 64-bit integers without a sign.
template <class Doubles, class Longs>
[[gnu::always_inline]] inline void round_to_integers(const Doubles& v, Longs& out) {
  static_assert(sizeof(Doubles) == sizeof(Longs));
  out = reinterpret_cast<Longs>(v + kRoundingShift64) - kRoundingBits64;
}

/// number_of() of each element.
template <class Longs, class Doubles>
[[gnu::always_inline]] inline void integers_to_numbers(const Longs& v, Doubles& out) {
  static_assert(sizeof(Doubles) == sizeof(Longs));
  out = reinterpret_cast<Doubles>(v + kRoundingBits64) - kRoundingShift64;
}

}  // namespace quern::kernels

// How far the values of two tensors of the same type are apart.
#pragma once

#include <cstdint>
#include <span>

#include "checkpoint/safetensors/element_names.h"

namespace quern::checkpoint {

struct Difference {
  std::uint64_t differing = 0;       ///< elements whose bits differ
  double max_error = 0;              ///< |a - b| in binary64 over elements where both are finite
  std::uint64_t not_comparable = 0;  ///< differing elements of which one is NaN or infinite
};

/// `a` and `b` have the same number of bytes, whole elements of `type`.
Difference difference(ElementType type, std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

/// An element's value; 64-bit integers are rounded to binary64, complex ones have none (NaN).
double element_value(ElementType type, const std::uint8_t* at);

}  // namespace quern::checkpoint

// Floating-point numbers as another type: to nearest, ties to even; NaN stays NaN, what is too large becomes infinite.
#pragma once

#include <cstdint>
#include <span>

#include "checkpoint/safetensors/element_names.h"

namespace quern::checkpoint {

/// F64, F32, F16 and BF16: what a cast reads.
bool can_cast(ElementType type);

/// Writes the elements of `from` (of `type`) as `to` (F32, F16 or BF16) into `out`, which has room for just them.
/// Returns how many finite values became infinite.
std::uint64_t cast(ElementType type, std::span<const std::uint8_t> from, ElementType to, std::span<std::uint8_t> out);

}  // namespace quern::checkpoint

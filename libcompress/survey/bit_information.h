// Bitwise real information: how much each bit of a value says of the same bit of the next value along an axis.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/array.h>
#include <quern/execution.h>
#include <quern/status.h>

namespace quern {

/// Bits of information, the sign first; entries beyond the type's bits are 0.
struct BitInformation {
  std::array<double, 64> bits{};
  std::uint64_t pairs = 0;
};

/// Of a floating-point array along an axis, whose neighbours are both valid. As counted: nothing is set to 0.
Result<BitInformation> bit_information(const ArrayView& array, std::size_t axis,
                                       std::span<const std::uint64_t> fill_bits, TaskRunner& runner);

/// The information that a bit of chance shows in so many pairs with 1 % probability at most.
double chance_information(std::uint64_t pairs);

/// How many bits of the mantissa have that share of what is significant.
unsigned mantissa_bits_for(const BitInformation& information, DType dtype, double share);

}  // namespace quern

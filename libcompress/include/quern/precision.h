// Bounds for people who think in digits: so many significant digits, or so much of the real information in the bits of
// the mantissa. Both are errors relative to each value. Where all values are of about one magnitude they become an
// absolute bound that keeps to them, which more codecs take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <quern/array.h>
#include <quern/bound.h>
#include <quern/execution.h>
#include <quern/status.h>

namespace quern {

struct PrecisionBound {
  /// abs, pwrel, or lossless where no valid value differs from 0, or nothing tells bits from noise (one element).
  ErrorBound bound;
  /// By information: how many bits of the mantissa have the share asked for, and along which axis that was found.
  std::optional<unsigned> mantissa_bits;
  std::size_t axis = 0;
};

/// |x - x'| <= 5 * 10^-(digits + 1) |x| for every valid value: half a unit in the last of so many significant decimal
/// digits, or less. `array`: in host memory. digits: 1 to 17, else `invalid_bound`. Floating-point types only, else
/// `unsupported`. `fill_bits`: declared fill values, as in CompressOptions; read during the call alone. O(n), no
/// memory.
Result<PrecisionBound> bound_for_digits(const ArrayView& array, unsigned digits,
                                        std::span<const std::uint64_t> fill_bits, const Execution& execution);

/// The error of rounding to the fewest bits of the mantissa that have `share` (above 0, below 1) of the bitwise real
/// information (Kloewer et al. 2021, doi:10.1038/s43588-021-00156-2): the mutual information of each bit and the same
/// bit of the next value along an axis, exponents as signed magnitudes, what chance would give with 1 % probability
/// set to 0, and so is what does not exceed 1.5 times the most that the last four bits have. Of the axes the one that
/// needs most bits counts. Pairs with a value that is not valid are left out. Array, types and `fill_bits` as above;
/// another share is `invalid_bound`. O(n * rank), no memory. Does not depend on threads.
Result<PrecisionBound> bound_for_information(const ArrayView& array, double share,
                                             std::span<const std::uint64_t> fill_bits, const Execution& execution);

}  // namespace quern

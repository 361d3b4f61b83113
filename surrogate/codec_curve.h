// What the codec `lorenzo` makes of an array or a sample of it at bounds all over the range. Its tiles know nothing of each
// other, so tiles side by side take as many bytes as in their places; and it is fast. ADR 060.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <quern/array.h>
#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/execution.h>

namespace quern::surrogate {

struct CurvePoint {
  double log_bound = 0;  ///< log2 of the half-width of the quantizer's steps by the range, as effective_bound() has it
  double log_bits = 0;   ///< log2 of the stream's bits a value
};

/// Points from the largest bound to the smallest; none where `range` has no finite width, or the registry no `lorenzo`. A
/// bound that the codec refuses has no point. An array of at most 2^18 values is encoded whole, at 15 bounds; of a larger
/// one a copy of 2^16 values, at 10, in the smallest of up to three layouts at a bound between. `array` is in host memory.
/// O(15 * values encoded); memory: two copies of them a thread. Fails with out_of_memory alone. The result does not depend
/// on threads.
Result<std::vector<CurvePoint>> lorenzo_curve(const ArrayView& array, const ValueRange& range,
                                              std::span<const std::uint64_t> fill_bits, const Registry& registry,
                                              TaskRunner& runner);

/// How many values lorenzo_curve() copies of an array of that shape; 0 where it encodes the array itself.
std::uint64_t lorenzo_sampled(const Shape& shape);

/// log2 of bits a value: between points on lines, above the largest bound that of its point. Below the smallest bound each
/// halving takes a bit more, up to `most_bits` in all, or none where `most_bits` is empty. `curve` has a point.
double log_bits_at(std::span<const CurvePoint> curve, double log_bound, std::optional<double> most_bits = std::nullopt);

}  // namespace quern::surrogate

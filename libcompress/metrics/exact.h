// Inequalities between binary64 numbers decided as if computed over the real numbers: no tolerance, no rounding.
#pragma once

#include <cstdint>

namespace quern::metrics {

/// |x - y| <= bound, for finite x, y and finite bound >= 0.
bool within_absolute(double x, double y, double bound);

/// |x - y| <= ratio * |x|, for finite x, y and 0 <= ratio < 1.
bool within_relative(double x, double y, double ratio);

/// The largest integer distance that an absolute bound allows; every distance between 64-bit integers is below 2^64.
std::uint64_t integer_limit(double bound);

}  // namespace quern::metrics

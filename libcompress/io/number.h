// Values of element types as bit patterns: what is needed to carry attributes and fill values between types.
#pragma once

#include <cstdint>
#include <optional>

#include <quern/dtype.h>

namespace quern::io {

/// The low dtype_bytes(dtype) bytes at `data`, in native order, as a number.
std::uint64_t load_bits(const void* data, DType dtype);
/// Stores the low bytes of `bits` at `data`.
void store_bits(void* data, std::uint64_t bits, DType dtype);

/// The value of a pattern; exact except for 64-bit integers above 2^53.
double bits_to_double(std::uint64_t bits, DType dtype);
/// A value as a float type, rounded to nearest even. Only for float types.
std::uint64_t double_to_float_bits(double value, DType dtype);

/// The pattern of the same value in another type, rounded to nearest even between floats. Nothing when `to` cannot hold
/// the value: a fraction or NaN as an integer, or out of range. Between equal types all bits are kept.
std::optional<std::uint64_t> convert_bits(std::uint64_t bits, DType from, DType to);

/// True when the pattern is NaN or infinite; false for integers.
bool is_special(std::uint64_t bits, DType dtype);

}  // namespace quern::io

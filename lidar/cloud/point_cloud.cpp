// Coordinates and attributes as binary64, for people, pictures and files of other types.
#include "lidar/cloud/point_cloud.h"

#include <bit>
#include <cmath>

#include "lidar/cloud/little_endian.h"

namespace quern::lidar {
namespace {

/// f16 and bf16 as their bits say.
double half_value(std::uint16_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

}  // namespace

std::array<double, 3> PointCloud::position(std::uint64_t point) const {
  std::array<double, 3> out{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::size_t at = static_cast<std::size_t>(3 * point) + axis;
    if (kind == CoordinateKind::f64) {
      out[axis] = doubles[at];
    } else if (kind == CoordinateKind::scaled) {
      out[axis] = grid.offset[axis] + static_cast<double>(static_cast<std::int32_t>(words[at])) * grid.scale[axis];
    } else {
      out[axis] = static_cast<double>(std::bit_cast<float>(words[at]));
    }
  }
  return out;
}

bool PointCloud::is_finite(std::uint64_t point) const {
  if (kind == CoordinateKind::scaled) return true;
  const auto at = position(point);
  return std::isfinite(at[0]) && std::isfinite(at[1]) && std::isfinite(at[2]);
}

const CloudColumn* PointCloud::column(const char* name) const {
  for (const CloudColumn& column : columns)
    if (column.name == name) return &column;
  return nullptr;
}

double element_as_double(const CloudColumn& column, std::uint64_t point) {
  const std::uint8_t* const at = column.values.data() + point * dtype_bytes(column.type);
  switch (column.type) {
    case DType::f16: return half_value(load_le<std::uint16_t>(at), 10);
    case DType::bf16: return half_value(load_le<std::uint16_t>(at), 7);
    case DType::f32: return static_cast<double>(load_le<float>(at));
    case DType::f64: return load_le<double>(at);
    case DType::i8: return load_le<std::int8_t>(at);
    case DType::i16: return load_le<std::int16_t>(at);
    case DType::i32: return load_le<std::int32_t>(at);
    case DType::i64: return static_cast<double>(load_le<std::int64_t>(at));
    case DType::u8: return load_le<std::uint8_t>(at);
    case DType::u16: return load_le<std::uint16_t>(at);
    case DType::u32: return load_le<std::uint32_t>(at);
    case DType::u64: return static_cast<double>(load_le<std::uint64_t>(at));
  }
  return 0;
}

bool is_exact_as_double(const CloudColumn& column, std::uint64_t point) {
  constexpr std::uint64_t kExact = UINT64_C(1) << 53;
  if (column.type != DType::i64 && column.type != DType::u64) return true;
  const auto bits = load_le<std::uint64_t>(column.values.data() + point * 8);
  const bool negative = column.type == DType::i64 && bits >> 63 != 0;
  return (negative ? 0 - bits : bits) <= kExact;
}

}  // namespace quern::lidar

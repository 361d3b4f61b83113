// Builders of test arrays.
#include "tests/support/array_cases.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace quern::testing {
namespace {

/// binary32 to a 16-bit format with `fraction` bits, by searching the neighbours: slow, plain, independent of the
/// library.
std::uint16_t to_16bit(double v, int exponent_bits, int fraction_bits) {
  const std::uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const auto value_of = [&](std::uint32_t pattern) {
    const int exponent = static_cast<int>(pattern >> fraction_bits);
    const double fraction = pattern & ((1u << fraction_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    if (exponent == 0) return std::ldexp(fraction, 1 - bias - fraction_bits);
    return std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  };
  const std::uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
  if (std::isnan(v)) return static_cast<std::uint16_t>(sign | infinity | 1);
  const double magnitude = std::fabs(v);
  if (std::isinf(v) || magnitude >= value_of(infinity - 1) * 1.001) return static_cast<std::uint16_t>(sign | infinity);
  std::uint32_t low = 0;
  std::uint32_t high = infinity - 1;
  while (low < high) {
    const std::uint32_t middle = (low + high + 1) / 2;
    if (value_of(middle) <= magnitude)
      low = middle;
    else
      high = middle - 1;
  }
  if (low + 1 < infinity && value_of(low + 1) - magnitude < magnitude - value_of(low)) ++low;
  return static_cast<std::uint16_t>(sign | low);
}

double from_16bit(std::uint16_t bits, int exponent_bits, int fraction_bits) {
  const std::uint32_t pattern = bits & 0x7fffu;
  const int exponent = static_cast<int>(pattern >> fraction_bits);
  const double fraction = pattern & ((1u << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double v;
  if (exponent == (1 << exponent_bits) - 1)
    v = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  else if (exponent == 0)
    v = std::ldexp(fraction, 1 - bias - fraction_bits);
  else
    v = std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return (bits & 0x8000) != 0 ? -v : v;
}

template <class T>
T clamped(double v) {
  if (std::isnan(v)) return T{0};
  const double lowest = static_cast<double>(std::numeric_limits<T>::lowest());
  const double highest = static_cast<double>(std::numeric_limits<T>::max());
  if (v <= lowest) return std::numeric_limits<T>::lowest();
  if (v >= highest) return std::numeric_limits<T>::max();
  return static_cast<T>(std::nearbyint(v));
}

template <class T>
void put(OwnedArray& array, std::uint64_t index, T value) {
  std::memcpy(array.bytes.data() + index * sizeof(T), &value, sizeof(T));
}
template <class T>
T get(const OwnedArray& array, std::uint64_t index) {
  T value;
  std::memcpy(&value, array.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

/// Largest finite magnitude that a type's test data uses, and a typical one.
double largest(DType t) {
  switch (t) {
    case DType::f16: return 65504.0;
    case DType::bf16: return 3.38e38;
    case DType::f32: return std::numeric_limits<float>::max();
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::i8: return 127;
    case DType::u8: return 255;
    case DType::i16: return 32767;
    case DType::u16: return 65535;
    case DType::i32: return 2147483647.0;
    case DType::u32: return 4294967295.0;
    case DType::i64: return 9.2e18;
    case DType::u64: return 1.8e19;
  }
  return 0;
}
double typical(DType t) { return is_float(t) ? 100.0 : std::min(largest(t) / 2, 20000.0); }

double smallest_denormal(DType t) {
  switch (t) {
    case DType::f16: return 0x1p-24;
    case DType::bf16: return 0x1p-133;
    case DType::f32: return 0x1p-149;
    default: return 0x1p-1074;
  }
}

/// Coordinates of an element, as fractions of a small wave number.
double wave(const Shape& shape, std::uint64_t index) {
  double v = 0;
  double weight = 1;
  for (std::size_t a = shape.rank(); a-- > 0; weight *= 0.7) {
    const std::uint64_t extent = shape[a];
    v += weight * std::sin(0.11 * static_cast<double>(index % extent) + static_cast<double>(a));
    index /= extent;
  }
  return v;
}

double value_at(const OwnedArray& array, Data data, std::uint64_t i, std::mt19937_64& random) {
  const std::uint64_t n = array.shape.elems();
  const double scale = typical(array.dtype);
  const double unit = std::uniform_real_distribution<double>(-1, 1)(random);
  const double inf = std::numeric_limits<double>::infinity();
  const double smooth = scale * 0.3 * wave(array.shape, i);
  switch (data) {
    case Data::constant: return scale * 0.37;
    case Data::zeros: return 0;
    case Data::ramp: return scale * static_cast<double>(i) / static_cast<double>(n + 1);
    case Data::smooth: return smooth;
    case Data::noise: return scale * unit;
    case Data::random_bits: return 0;
    case Data::nan_scattered: return random() % 100 == 0 ? std::nan("") : smooth;
    case Data::nan_block: return i % n >= n / 4 && i < n / 2 ? std::nan("") : smooth;
    case Data::all_nan: return std::nan("");
    case Data::inf_scattered: return random() % 50 == 0 ? (unit < 0 ? -inf : inf) : smooth;
    case Data::wide_range: return std::pow(largest(array.dtype) / 10, unit) * (random() % 2 == 0 ? 1 : -1);
    case Data::largest_mixed: return random() % 9 == 0 ? (unit < 0 ? -1 : 1) * largest(array.dtype) : smooth;
    case Data::denormal: return smallest_denormal(array.dtype) * std::floor(unit * 1000);
    case Data::minus_zero: return random() % 3 == 0 ? -0.0 : random() % 2 == 0 ? 0.0 : smooth;
    case Data::spike: return i == n / 2 ? largest(array.dtype) / 2 : smooth;
    case Data::offset_signal: return (array.dtype == DType::f16 ? 2000 : 1e6) + unit;
    case Data::land: return wave(array.shape, i) > 0.2 ? 0.0 : 20 + smooth;
    case Data::alternating_extremes: return (i % 2 == 0 ? 1 : -1) * largest(array.dtype);
  }
  return 0;
}

}  // namespace

const std::vector<Data>& all_data() {
  static const std::vector<Data> all = [] {
    std::vector<Data> v;
    for (int d = 0; d <= static_cast<int>(Data::alternating_extremes); ++d) v.push_back(static_cast<Data>(d));
    return v;
  }();
  return all;
}

const char* data_name(Data data) {
  static const char* const names[] = {
      "constant",      "zeros",      "ramp",    "smooth",        "noise",      "random_bits",
      "nan_scattered", "nan_block",  "all_nan", "inf_scattered", "wide_range", "largest_mixed",
      "denormal",      "minus_zero", "spike",   "offset_signal", "land",       "alternating_extremes"};
  return names[static_cast<int>(data)];
}

const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> all{DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                                      DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};
  return all;
}

Shape shape_of(std::initializer_list<std::uint64_t> extents) {
  return Shape::make({extents.begin(), extents.size()}).value();
}

const std::vector<Shape>& edge_shapes() {
  static const std::vector<Shape> all{shape_of({}),
                                      shape_of({0}),
                                      shape_of({1}),
                                      shape_of({2}),
                                      shape_of({31}),
                                      shape_of({1023}),
                                      shape_of({1024}),
                                      shape_of({1025}),
                                      shape_of({4097}),
                                      shape_of({8191}),
                                      shape_of({8193}),
                                      shape_of({16385}),
                                      shape_of({3, 0, 2}),
                                      shape_of({1, 1}),
                                      shape_of({3, 5}),
                                      shape_of({31, 33}),
                                      shape_of({64, 128}),
                                      shape_of({65, 129}),
                                      shape_of({97, 1}),
                                      shape_of({1, 211}),
                                      shape_of({2, 5003}),
                                      shape_of({1, 1, 1}),
                                      shape_of({1, 1, 7}),
                                      shape_of({5, 1, 300}),
                                      shape_of({4, 8, 32}),
                                      shape_of({9, 17, 65}),
                                      shape_of({3, 61, 67}),
                                      shape_of({8, 16, 64}),
                                      shape_of({2, 3, 5, 7}),
                                      shape_of({4, 3, 19, 23}),
                                      shape_of({2, 2, 2, 2, 3}),
                                      shape_of({1, 2, 1, 3, 1, 5, 1, 7})};
  return all;
}

void store_element(OwnedArray& array, std::uint64_t index, double v) {
  switch (array.dtype) {
    case DType::f16: put(array, index, to_16bit(v, 5, 10)); break;
    case DType::bf16: put(array, index, to_16bit(v, 8, 7)); break;
    case DType::f32: put(array, index, static_cast<float>(v)); break;
    case DType::f64: put(array, index, v); break;
    case DType::i8: put(array, index, clamped<std::int8_t>(v)); break;
    case DType::i16: put(array, index, clamped<std::int16_t>(v)); break;
    case DType::i32: put(array, index, clamped<std::int32_t>(v)); break;
    case DType::i64: put(array, index, clamped<std::int64_t>(v)); break;
    case DType::u8: put(array, index, clamped<std::uint8_t>(v)); break;
    case DType::u16: put(array, index, clamped<std::uint16_t>(v)); break;
    case DType::u32: put(array, index, clamped<std::uint32_t>(v)); break;
    case DType::u64: put(array, index, clamped<std::uint64_t>(v)); break;
  }
}

double load_element(const OwnedArray& array, std::uint64_t index) {
  switch (array.dtype) {
    case DType::f16: return from_16bit(get<std::uint16_t>(array, index), 5, 10);
    case DType::bf16: return from_16bit(get<std::uint16_t>(array, index), 8, 7);
    case DType::f32: return get<float>(array, index);
    case DType::f64: return get<double>(array, index);
    case DType::i8: return get<std::int8_t>(array, index);
    case DType::i16: return get<std::int16_t>(array, index);
    case DType::i32: return get<std::int32_t>(array, index);
    case DType::i64: return static_cast<double>(get<std::int64_t>(array, index));
    case DType::u8: return get<std::uint8_t>(array, index);
    case DType::u16: return get<std::uint16_t>(array, index);
    case DType::u32: return get<std::uint32_t>(array, index);
    case DType::u64: return static_cast<double>(get<std::uint64_t>(array, index));
  }
  return 0;
}

OwnedArray make_array(DType dtype, const Shape& shape, Data data) {
  OwnedArray array{Vector<std::uint8_t>(shape.elems() * dtype_bytes(dtype)), dtype, shape};
  std::mt19937_64 random(1000 * static_cast<std::uint64_t>(data) + static_cast<std::uint64_t>(dtype));
  if (data == Data::random_bits) {
    for (std::uint8_t& byte : array.bytes) byte = static_cast<std::uint8_t>(random());
    return array;
  }
  for (std::uint64_t i = 0; i < shape.elems(); ++i) store_element(array, i, value_at(array, data, i, random));
  return array;
}

}  // namespace quern::testing

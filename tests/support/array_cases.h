// Arrays that tests run on: every element type, shapes at and around every edge, and data from constant to hostile.
// Deterministic: a case is its name.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <quern/array.h>
#include <quern/memory.h>

namespace quern::testing {

/// An array that owns its memory.
struct OwnedArray {
  Vector<std::uint8_t> bytes;
  DType dtype = DType::f32;
  Shape shape;

  ArrayView view() const { return {bytes.data(), dtype, shape}; }
};

enum class Data {
  constant,
  zeros,
  ramp,
  smooth,
  noise,
  random_bits,
  nan_scattered,
  nan_block,
  all_nan,
  inf_scattered,
  wide_range,
  largest_mixed,
  denormal,
  minus_zero,
  spike,
  offset_signal,
  land,
  alternating_extremes,
};

/// Every kind of data, in order.
const std::vector<Data>& all_data();
const char* data_name(Data data);
/// All 12 element types.
const std::vector<DType>& all_dtypes();
/// Shapes of rank 0 to 8: 0, 1, prime, tile and chunk sizes and their neighbours; none above 20 000 elements.
const std::vector<Shape>& edge_shapes();

Shape shape_of(std::initializer_list<std::uint64_t> extents);

/// Makes an array; integers get the same kind of data scaled to their type (special kinds become extremes).
OwnedArray make_array(DType dtype, const Shape& shape, Data data);

/// Stores a double as an element of any type, rounded and clamped.
void store_element(OwnedArray& array, std::uint64_t index, double value);
/// Element as a double (64-bit integers rounded).
double load_element(const OwnedArray& array, std::uint64_t index);

}  // namespace quern::testing

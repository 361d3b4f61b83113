// Elements of a chunk as numbers in units and back, a row at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "codecs/interp/chunk.h"
#include "codecs/interp/value_format.h"
#include "kernels/common/number_elements.h"
#include "libcompress/core/element_of.h"

namespace quern::codec::interp {

/// Calls f(Element{}) for a supported type.
template <class F>
auto with_element(DType dtype, F&& f) {
  return kernels::with_number_element(element_of(dtype), f);
}

/// Widens a range to the finite elements of a row that are not special.
template <class Element>
void add_range(const kernels::InterpKernels& kernels, const typename Element::Bits* row, const std::uint8_t* special,
               std::size_t count, ChunkRange& range) {
  const auto left_out = [&](std::size_t x) {
    const double v = Element::value(row[x]);
    return (special != nullptr && special[x] != 0) || v - v != 0;
  };
  if (range.low > range.high) {
    std::size_t x = 0;
    while (x < count && left_out(x)) ++x;
    if (x < count) range.first = Element::value(row[x]);
  }
  if constexpr (std::is_same_v<Element, kernels::F32>) {
    if (special == nullptr) return kernels.range32(row, count, range.low, range.high);
  }
  for (std::size_t x = 0; x < count; ++x) {
    if (left_out(x)) continue;
    const double v = Element::value(row[x]);
    range.low = v < range.low ? v : range.low;
    range.high = v > range.high ? v : range.high;
  }
}

/// A row in units; 0 for what is not finite or out of range.
template <class Element, class Word>
void to_units(const kernels::InterpKernels& kernels, const typename Element::Bits* row, std::size_t count,
              const coding::ValueFormat& format, Word* out) {
  const double inverse = 1 / format.unit();
  const double most = most_units(sizeof(Word) == sizeof(std::int32_t));
  if constexpr (std::is_same_v<Element, kernels::F32>) {
    kernels.rows<Word>().units32(row, count, format.base, inverse, most, out);
  } else if constexpr (std::is_same_v<Element, kernels::F64>) {
    kernels.rows<Word>().units64(row, count, format.base, inverse, most, out);
  } else {
    for (std::size_t x = 0; x < count; ++x)
      out[x] = kernels::interp_units<Word>(Element::value(row[x]), format.base, inverse, most);
  }
}

/// The elements that values in units become.
template <class Element, class Word>
void to_elements(const kernels::InterpKernels& kernels, const Word* values, std::size_t count,
                 const coding::ValueFormat& format, typename Element::Bits* out) {
  const double unit = format.unit();
  if constexpr (std::is_same_v<Element, kernels::F32>) {
    kernels.rows<Word>().singles(values, count, unit, format.base, out);
  } else if constexpr (std::is_same_v<Element, kernels::F64>) {
    kernels.rows<Word>().doubles(values, count, unit, format.base, out);
  } else {
    for (std::size_t x = 0; x < count; ++x)
      out[x] = Element::bits(kernels::interp_number(values[x], unit, format.base));
  }
}

/// True when all elements of a row clearly come back within the bound; else each has to be looked at.
template <class Element>
bool clearly_kept(const kernels::InterpKernels& kernels, const typename Element::Bits* row,
                  const typename Element::Bits* back, std::size_t count, double bound) {
  const double strict = bound * (1 - 0x1p-50);
  if constexpr (std::is_same_v<Element, kernels::F32>) {
    return kernels.near32(row, back, count, strict);
  } else if constexpr (std::is_same_v<Element, kernels::F64>) {
    return kernels.near64(row, back, count, strict);
  } else {
    return false;
  }
}

}  // namespace quern::codec::interp

// Chunks that are coded as a chunk of 32-bit integers which stand for their elements: what lattices and prequantized
// elements share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <quern/codec.h>
#include <quern/dtype.h>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {

/// The spec of the chunk of integers.
inline ChunkSpec integer_spec(ChunkSpec spec) {
  spec.dtype = DType::i32;
  return spec;
}
inline EncodeSpec integer_spec(EncodeSpec spec) {
  spec.dtype = DType::i32;
  spec.prequantized = false;
  return spec;
}

/// Room for 32-bit integers in a box of elements of 4 or 8 bytes: each row at the beginning of its row.
inline MutableBox3 integer_box(DType dtype, MutableBox3 box) {
  for (std::uint64_t& stride : box.strides) stride *= dtype_bytes(dtype) / sizeof(std::int32_t);
  return box;
}

/// Puts element_of(integer), the bits of an element, in the place of each integer. These are in `integers`, in C order,
/// or where that is null in the box itself, as integer_box has them.
template <class Bits, class ElementOf>
void spread_integers(const std::int32_t* integers, const MutableBox3& box, const ElementOf& element_of) {
  const std::size_t rows = static_cast<std::size_t>(box.extents[0] * box.extents[1]);
  const std::size_t columns = static_cast<std::size_t>(box.extents[2]);
  for (std::size_t r = 0; r < rows; ++r) {
    std::uint8_t* const row = static_cast<std::uint8_t*>(box.data) + row_offset(box, r) * sizeof(Bits);
    const auto* const from = integers != nullptr ? reinterpret_cast<const std::uint8_t*>(integers + r * columns) : row;
    // From the end: an element takes the room of its own integer and of later ones.
    for (std::size_t x = columns; x-- > 0;) {
      std::int32_t n = 0;
      std::memcpy(&n, from + x * sizeof(n), sizeof(n));
      const Bits bits = element_of(n);
      std::memcpy(row + x * sizeof(bits), &bits, sizeof(bits));
    }
  }
}

}  // namespace quern::codec::stencil

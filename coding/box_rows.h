// The rows of a box of up to three axes, counted in C order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::coding {

/// Element offset of row `r` of a box.
template <class Box>
std::uint64_t row_offset(const Box& box, std::size_t r) {
  return r / box.extents[1] * box.strides[0] + r % box.extents[1] * box.strides[1];
}
/// Classes of special elements of a row, 0 for the others; null when the box has none.
template <class Box>
const std::uint8_t* special_row(const Box& box, std::size_t r) {
  if (box.special == nullptr) return nullptr;
  return box.special + r / box.extents[1] * box.special_strides[0] + r % box.extents[1] * box.special_strides[1];
}

}  // namespace quern::coding

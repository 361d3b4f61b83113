// Boxes whose elements lie in C order without gaps, as parts of them need it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include <quern/codec.h>
#include <quern/status.h>

#include "coding/box_rows.h"
#include "libcompress/core/buffer.h"

namespace quern::codec::stencil {

inline bool is_dense(const std::array<std::uint64_t, 3>& extents, const std::array<std::uint64_t, 2>& strides) {
  return (extents[1] <= 1 || strides[1] == extents[2]) && (extents[0] <= 1 || strides[0] == extents[1] * extents[2]);
}

/// The elements of a box, `width` bytes each, in C order: where they lie, or copied to `room`.
inline Result<const std::uint8_t*> dense_elements(const void* data, const std::array<std::uint64_t, 3>& extents,
                                                  const std::array<std::uint64_t, 2>& strides, std::size_t width,
                                                  AlignedBuffer& room) {
  const auto* const from = static_cast<const std::uint8_t*>(data);
  if (from == nullptr || is_dense(extents, strides)) return from;
  const ConstBox3 box{data, extents, strides};
  QUERN_RETURN_IF_ERROR(room.resize(box.elems() * width));
  const std::size_t row_bytes = static_cast<std::size_t>(extents[2]) * width;
  for (std::size_t r = 0; r < extents[0] * extents[1]; ++r)
    std::memcpy(room.data() + r * row_bytes, from + coding::row_offset(box, r) * width, row_bytes);
  return room.data();
}

/// Whether nothing of a box is coded.
inline bool all_special(const ConstBox3& box) {
  if (box.special == nullptr) return false;
  for (std::size_t r = 0; r < box.extents[0] * box.extents[1]; ++r)
    if (std::memchr(coding::special_row(box, r), 0, static_cast<std::size_t>(box.extents[2])) != nullptr) return false;
  return true;
}

inline bool any_special(const std::uint8_t* special, std::uint64_t elems) {
  return special != nullptr && std::any_of(special, special + elems, [](std::uint8_t s) { return s != 0; });
}

}  // namespace quern::codec::stencil

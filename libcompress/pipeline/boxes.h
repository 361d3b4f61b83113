// Copying boxes of elements between memory with strides and contiguous memory.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include <quern/codec.h>

namespace quern {

// Streams are little-endian; raw chunks are copied as they lie in memory.
static_assert(std::endian::native == std::endian::little, "raw chunks need a byte swap on this machine");

/// Calls `row(offset in elements of the strided memory, offset in elements of contiguous memory)` for each row of
/// extents[2] elements.
template <class Row>
void for_each_row(const std::array<std::uint64_t, 3>& extents, const std::array<std::uint64_t, 2>& strides,
                  const Row& row) {
  std::uint64_t dense = 0;
  for (std::uint64_t i = 0; i < extents[0]; ++i)
    for (std::uint64_t j = 0; j < extents[1]; ++j, dense += extents[2]) row(i * strides[0] + j * strides[1], dense);
}

inline void gather(const ConstBox3& from, std::size_t element_bytes, std::uint8_t* to) {
  const auto* base = static_cast<const std::uint8_t*>(from.data);
  for_each_row(from.extents, from.strides, [&](std::uint64_t strided, std::uint64_t dense) {
    std::memcpy(to + dense * element_bytes, base + strided * element_bytes, from.extents[2] * element_bytes);
  });
}

/// Whether a box holds these elements, bit for bit.
inline bool same_bytes(const ConstBox3& box, std::size_t element_bytes, const std::uint8_t* elements) {
  const auto* base = static_cast<const std::uint8_t*>(box.data);
  bool same = true;
  for_each_row(box.extents, box.strides, [&](std::uint64_t strided, std::uint64_t dense) {
    same = same && std::memcmp(elements + dense * element_bytes, base + strided * element_bytes,
                               box.extents[2] * element_bytes) == 0;
  });
  return same;
}

inline void scatter(const std::uint8_t* from, std::size_t element_bytes, const MutableBox3& to) {
  auto* base = static_cast<std::uint8_t*>(to.data);
  for_each_row(to.extents, to.strides, [&](std::uint64_t strided, std::uint64_t dense) {
    std::memcpy(base + strided * element_bytes, from + dense * element_bytes, to.extents[2] * element_bytes);
  });
}

/// Sets every element to the same bits.
inline void fill_box(const MutableBox3& to, std::size_t element_bytes, std::uint64_t bits) {
  auto* base = static_cast<std::uint8_t*>(to.data);
  for_each_row(to.extents, to.strides, [&](std::uint64_t strided, std::uint64_t) {
    for (std::uint64_t k = 0; k < to.extents[2]; ++k)
      std::memcpy(base + (strided + k) * element_bytes, &bits, element_bytes);
  });
}

}  // namespace quern

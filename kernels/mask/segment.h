// A segment as the mask stage sees it: a box of words inside an array, in host or device memory as the caller likes.
// Cell (i, y, x) has C order index (i * n1 + y) * n2 + x; rows are numbered through all planes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace quern::kernels {

using SegmentExtents = std::array<std::uint64_t, 3>;

inline constexpr std::size_t kMaxSpecials = 30;             ///< bit patterns that have a class of their own
inline constexpr std::uint8_t kVerbatimClass = 255;         ///< class of cells whose bits are stored one by one
inline constexpr std::uint64_t kMaxReferenceDistance = 64;  ///< planes that the coder looks back at most

/// Strides of axes 0 and 1 in elements; the last axis is contiguous.
template <class Word>
struct SegmentBox {
  Word* cells = nullptr;
  SegmentExtents extents{1, 1, 1};
  std::array<std::uint64_t, 2> strides{0, 0};

  constexpr std::uint64_t rows() const { return extents[0] * extents[1]; }
  constexpr std::uint64_t cols() const { return extents[2]; }
  constexpr std::uint64_t elems() const { return extents[0] * extents[1] * extents[2]; }
  constexpr Word* row(std::uint64_t r) const {
    return cells + r / extents[1] * strides[0] + r % extents[1] * strides[1];
  }
};

/// Calls body(row, C order index of its first cell) for each row in order.
template <class Word, class Body>
constexpr void for_rows(const SegmentBox<Word>& box, Body&& body) {
  std::uint64_t first = 0;
  for (std::uint64_t i = 0; i < box.extents[0]; ++i) {
    for (std::uint64_t y = 0; y < box.extents[1]; ++y, first += box.extents[2]) {
      body(box.cells + i * box.strides[0] + y * box.strides[1], first);
    }
  }
}

}  // namespace quern::kernels

// Where the values of a chunk lie.
#pragma once

#include <array>
#include <cstdint>

namespace quern::kernels {

/// A chunk inside an array: extents slowest axis first, strides of axes 0 and 1 in elements, last axis contiguous.
struct ChunkBox {
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 2> strides{0, 0};
};

}  // namespace quern::kernels

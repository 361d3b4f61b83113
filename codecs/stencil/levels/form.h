// What all chunks of an array in levels share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::codec::stencil {

/// Which axes a chunk has beyond those of the grid, and how they are walked.
struct LevelsForm {
  bool levels = false;          ///< chunks may be in levels
  bool wavelet = false;         ///< chunks may be under the wavelet transform, and are not in levels
  bool sequential = false;      ///< planes of the first axis one after another
  std::uint8_t split_axis = 0;  ///< of the grid, where inner > 1
  bool edges = false;           ///< chunks in levels may have groups that are not linear
  std::uint64_t inner = 1;      ///< the axis is two; this is the extent of the faster one

  /// Of a box's axis of that extent: the extent of the faster one of the two that it is, or 1 where it is not split.
  constexpr std::uint64_t inner_of(std::size_t axis, std::uint64_t extent) const {
    return inner > 1 && split_axis == axis && extent % inner == 0 ? inner : 1;
  }
};

}  // namespace quern::codec::stencil

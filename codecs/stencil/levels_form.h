// What all chunks of an array in levels share.
#pragma once

#include <cstdint>

namespace quern::codec::stencil {

/// Which axes a chunk has beyond those of the grid, and how they are walked.
struct LevelsForm {
  bool levels = false;          ///< chunks may be in levels
  bool wavelet = false;         ///< chunks may be under the wavelet transform, and are not in levels
  bool sequential = false;      ///< planes of the first axis one after another
  std::uint8_t split_axis = 0;  ///< of the grid, where inner > 1
  std::uint64_t inner = 1;      ///< the axis is two; this is the extent of the faster one
};

}  // namespace quern::codec::stencil

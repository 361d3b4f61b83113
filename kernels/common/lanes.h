// How many lanes an execution model has, and how many rows of them a tile. A warp has as many threads; on a CPU a
// vector of lanes is an array.
#pragma once

namespace quern::kernels {

inline constexpr unsigned kLanes = 32;
inline constexpr unsigned kRows = 32;

/// Warps of a thread block, at most.
inline constexpr unsigned kMaxBlockWarps = 32;

}  // namespace quern::kernels

// XXH3-64 by the calling warp.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/common/warp/xxh3.h"

namespace quern::kernels {

/// The same in all lanes. A template, because nvcc takes a constexpr template that a plain function names for host
/// code.
template <class X = WarpLanes>
__device__ __forceinline__ std::uint64_t warp_xxh3(const LaneHashInput& input) {
  return xxh3_lanes<X>(input);
}

}  // namespace quern::kernels

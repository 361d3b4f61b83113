// The range of an array in device memory. Nothing here allocates or waits; everything is queued on the caller's stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/cuda/array_blocks.h"
#include "kernels/common/cuda/fill_values.h"
#include "kernels/common/range_keys.h"

namespace quern::kernels {

/// Arrays of as many elements each.
struct SameArrays {
  const void* const* at = nullptr;  ///< where each lies, in device memory; null: there is one, `only`
  const void* only = nullptr;
  std::uint32_t count = 1;
  std::uint64_t elems = 0;
};

/// Finds the smallest and the largest element that is finite and equals no fill value, and counts such elements, in one
/// read of the array. `in` may lie at any address, best at one that 16 divides. `out` is device memory, aligned to 8
/// bytes. The result is the same for every `max_ctas`, which is at least 1. cudaErrorInvalidValue for an unknown
/// element type.
cudaError_t find_range_async(Element element, const void* in, std::uint64_t elems, const FillValues& fills,
                             RangeKeys* out, cudaStream_t stream, unsigned max_ctas = kMaxArrayCtas);

/// The same for many arrays in one launch: that of array i to out[i].
cudaError_t find_ranges_async(Element element, const SameArrays& arrays, const FillValues& fills, RangeKeys* out,
                              cudaStream_t stream, unsigned max_ctas = kMaxArrayCtas);

}  // namespace quern::kernels

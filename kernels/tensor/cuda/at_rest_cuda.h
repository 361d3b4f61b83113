// Steps of Adam over moments at rest in device memory: what codecs/tensor/at_rest does on the host, with the same bits.
// Nothing here allocates or waits; everything is queued on the caller's stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/tensor/at_rest_block.h"

namespace quern::kernels {

inline constexpr unsigned kMostAtRestBlocks = 132 * 16;

/// The stored form of a range in device memory, as AtRestMoments::fixed_part() lays it out, and what lies beside.
struct AtRestRangeOnDevice {
  std::uint64_t values = 0;
  std::uint64_t first_block = 0;  ///< its number in the whole parameter space
  /// Sizes of the tiles, headers and slots; aligned to 4 bytes.
  std::uint32_t* fixed = nullptr;
  const std::uint32_t* beside = nullptr;  ///< of blocks that are not narrow; null where there are none
  /// Gets what lies beside after the step, as far as `beside_words` words go; may not be `beside`. How many there are is
  /// the sum of the sizes in `fixed`.
  std::uint32_t* new_beside = nullptr;
  std::uint64_t beside_words = 0;
};

/// Gradients and weights of the range in device memory, aligned to 16 bytes (the copy and bfloat16 gradients to 8).
template <class Gradient>
struct AtRestArrays {
  const Gradient* gradient = nullptr;
  float* weight = nullptr;
  std::uint16_t* copy = nullptr;  ///< null, or gets the weights in bfloat16
};

/// Bytes of device memory that a step needs beside its arrays: 8.1 a value, aligned to 8.
std::uint64_t at_rest_scratch_bytes(std::uint64_t values);

/// One step. What results does not depend on `max_blocks`, which is at least 1. cudaErrorInvalidValue for null pointers
/// where there are values, pointers that are not aligned, other forms, and more than 2^38 values.
cudaError_t at_rest_step_async(const AtRestStep& step, const AtRestRangeOnDevice& range,
                               const AtRestArrays<float>& arrays, void* scratch, cudaStream_t stream,
                               unsigned max_blocks = kMostAtRestBlocks);
/// The same with gradients in bfloat16.
cudaError_t at_rest_step_async(const AtRestStep& step, const AtRestRangeOnDevice& range,
                               const AtRestArrays<std::uint16_t>& arrays, void* scratch, cudaStream_t stream,
                               unsigned max_blocks = kMostAtRestBlocks);

}  // namespace quern::kernels

// Fields that benchmarks compress: waves of a given length and noise of a given strength, the same values on every
// device and in every run; and what else arrays are made of on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "kernels/common/cuda/chunk.h"
#include "kernels/common/element_type.h"

namespace quern::bench {

/// A field whose values span about 1, and the absolute bound that it is compressed under.
struct FieldKind {
  const char* name = "";
  double bound = 0;
  double noise = 0;       ///< amplitude, in bounds
  double wavelength = 0;  ///< of the longest waves, in cells
};

/// From hardly compressible to almost constant: ratios of about 2, 4, 10, 20 and more than 100 in binary32.
inline constexpr FieldKind kFieldKinds[] = {{"rough", 1e-5, 20000, 64},
                                            {"noisy", 1e-4, 60, 96},
                                            {"mixed", 1e-3, 3, 96},
                                            {"smooth", 1e-3, 0.7, 256},
                                            {"calm", 4e-3, 0, 2048}};

/// Fills a contiguous array of f32 or f64, extents slowest axis first.
cudaError_t fill_field_async(kernels::Element element, const FieldKind& kind,
                             const std::array<std::uint64_t, 3>& extents, void* out, cudaStream_t stream);

/// Makes NaN of about a third of the cells, in patches of that wavelength.
cudaError_t punch_gaps_async(kernels::Element element, double wavelength, const std::array<std::uint64_t, 3>& extents,
                             void* values, cudaStream_t stream);

/// Repeats the first `period` bytes of an array to its end.
cudaError_t repeat_async(std::uint8_t* values, std::uint64_t period, std::uint64_t bytes, cudaStream_t stream);

/// Copies chunks that took as many bytes as their values: those with sizes[q] >= their bytes, from their box in one
/// array to the same box of another.
cudaError_t copy_raw_chunks_async(kernels::Element element, const kernels::CudaChunk* from,
                                  const kernels::CudaChunk* to, const std::uint32_t* sizes, std::uint32_t count,
                                  cudaStream_t stream);

}  // namespace quern::bench

// How good is a reconstruction, both arrays in device memory: what measure_quality of quern/metrics.h measures, without
// autocorrelation. Nothing here allocates or waits; everything is queued on the caller's stream.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/common/cuda/array_blocks.h"
#include "kernels/common/cuda/fill_values.h"
#include "kernels/common/element_type.h"

namespace quern::kernels {

/// Extents, slowest axis first; their product fits in 63 bits. Rank 0 is one element.
struct CudaShape {
  std::array<std::uint64_t, 8> extents{};
  unsigned rank = 0;

  constexpr std::span<const std::uint64_t> view() const { return {extents.data(), rank}; }
  constexpr std::uint64_t elems() const {
    std::uint64_t n = 1;
    for (unsigned a = 0; a < rank; ++a) n *= extents[a];
    return n;
  }
};

/// Fields and special cases as in Quality. Counts, min, max, max_error with its index, max_pointwise_rel and max_ulp
/// are equal to the host's (min and max by value: the sign of a zero may differ). Sums are formed in another order,
/// always the same for an array of a shape and type: mse and nrmse agree with the host's to 1e-12 of their value,
/// psnr_db to 1e-10, ssim to 1e-9.
struct CudaQuality {
  std::uint64_t elems = 0;
  std::uint64_t valid = 0;
  std::uint64_t specials_lost = 0;
  double min = 0.0;
  double max = 0.0;
  double max_error = 0.0;
  std::uint64_t max_error_index = 0;
  double max_pointwise_rel = 0.0;
  double mse = 0.0;
  double psnr_db = 0.0;  ///< where has_psnr
  double nrmse = 0.0;    ///< where has_nrmse
  double ssim = 0.0;     ///< where has_ssim
  std::uint64_t max_ulp = 0;
  std::uint32_t has_psnr = 0;
  std::uint32_t has_nrmse = 0;
  std::uint32_t has_ssim = 0;
  std::uint32_t reserved = 0;
};

/// What to measure. The arrays may lie at any addresses, best at ones that 16 divides.
struct CudaPair {
  Element element = Element::f32;
  CudaShape shape;
  const void* original = nullptr;
  const void* reconstructed = nullptr;
  bool with_ssim = true;
};

/// Device memory that measure_quality_async needs, exactly; a few bytes for each 64 KiB of the array.
/// cudaErrorInvalidValue for an unknown element type or a rank above 8.
cudaError_t quality_workspace(const CudaPair& pair, std::size_t& bytes, unsigned max_ctas = kMaxArrayCtas);

/// Measures; `out` is device memory, aligned to 8 bytes, `workspace` to 256. Each array is read once, once more for
/// structural similarity (some 1.2 times from memory, for tiles overlap), and once more for errors of f64 whose squares
/// would leave the range of binary64. The result is the same bits for every `max_ctas`, which is at least 1.
/// cudaErrorInvalidValue also for a workspace that is too small or lies elsewhere.
cudaError_t measure_quality_async(const CudaPair& pair, const FillValues& fills, CudaQuality* out, void* workspace,
                                  std::size_t workspace_bytes, cudaStream_t stream, unsigned max_ctas = kMaxArrayCtas);

}  // namespace quern::kernels

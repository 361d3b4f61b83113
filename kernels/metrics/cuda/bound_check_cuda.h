// Does a decoded array keep its bound, both arrays in device memory. The verdict on one element is that of
// kernels/metrics, which shares nothing with any encoder. Nothing here allocates or waits; everything is queued on the
// caller's stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/cuda/array_blocks.h"
#include "kernels/common/cuda/fill_values.h"
#include "kernels/metrics/bound_verifier.h"

namespace quern::kernels {

/// What check_bound of quern/metrics.h counts, and its first finding; all zero when there is none.
struct CudaBoundCheck {
  std::uint64_t violations = 0;     ///< finite elements over the bound + specials that changed
  std::uint64_t specials_lost = 0;  ///< NaN, infinities, fill values and signs of zero that changed
  std::uint64_t first_index = 0;    ///< the lowest
  verifier::Finding first;          ///< of that element; what a NaN holds may be lost
};

/// Checks every element, exactly. The arrays may lie at any addresses, best at ones that 16 divides; each is read once.
/// `out` is device memory, aligned to 8 bytes. The result is the same for every `max_ctas`, which is at least 1.
/// cudaErrorInvalidValue for an unknown element type and for a bound that does not fit it.
cudaError_t check_bound_async(Element element, const void* original, const void* reconstructed, std::uint64_t elems,
                              const verifier::Bound& bound, const FillValues& fills, CudaBoundCheck* out,
                              cudaStream_t stream, unsigned max_ctas = kMaxArrayCtas);

}  // namespace quern::kernels

// Kernels for byte planes compiled for avx512.
// GCC 12 says so of its own headers, whose results that are masked out have no value (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include "kernels/tensor/cpu/planes_instance.h"

namespace quern::kernels {

struct Isa_avx512;
const PlaneKernels& plane_kernels_avx512() { return PlaneInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

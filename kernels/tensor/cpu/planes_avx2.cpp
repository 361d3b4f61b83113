// Kernels for byte planes compiled for avx2.
#include "kernels/tensor/cpu/planes_instance.h"

namespace quern::kernels {

struct Isa_avx2;
const PlaneKernels& plane_kernels_avx2() { return PlaneInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

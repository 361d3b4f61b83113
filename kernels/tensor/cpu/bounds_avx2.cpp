// Kernels for bounded tensor modes compiled for avx2.
#include "kernels/tensor/cpu/bounds_instance.h"

namespace quern::kernels {

struct Isa_avx2;
const TensorBoundKernels& tensor_bound_kernels_avx2() { return TensorBoundInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

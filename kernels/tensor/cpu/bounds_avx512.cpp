// Kernels for bounded tensor modes compiled for avx512.
#include "kernels/tensor/cpu/bounds_instance.h"

namespace quern::kernels {

struct Isa_avx512;
const TensorBoundKernels& tensor_bound_kernels_avx512() { return TensorBoundInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

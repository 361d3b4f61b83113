// Kernels for bounded tensor modes compiled for baseline.
#include "kernels/tensor/cpu/bounds_instance.h"

namespace quern::kernels {

struct Isa_baseline;
const TensorBoundKernels& tensor_bound_kernels_baseline() { return TensorBoundInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

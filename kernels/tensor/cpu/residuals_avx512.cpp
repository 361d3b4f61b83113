// Kernels for residuals of bounded tensor modes compiled for avx512.
#include "kernels/tensor/cpu/residuals_instance.h"

namespace quern::kernels {

struct Isa_avx512;
const TensorResidualKernels& tensor_residual_kernels_avx512() { return TensorResidualInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

// Kernels for residuals of bounded tensor modes compiled for avx2.
#include "kernels/tensor/cpu/residuals_instance.h"

namespace quern::kernels {

struct Isa_avx2;
const TensorResidualKernels& tensor_residual_kernels_avx2() { return TensorResidualInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

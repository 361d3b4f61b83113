// Kernels for residuals of bounded tensor modes compiled for baseline.
#include "kernels/tensor/cpu/residuals_instance.h"

namespace quern::kernels {

struct Isa_baseline;
const TensorResidualKernels& tensor_residual_kernels_baseline() {
  return TensorResidualInstance<Isa_baseline>::kKernels;
}

}  // namespace quern::kernels

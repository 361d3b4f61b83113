// Kernels that code residuals, compiled for avx2.
#include "kernels/entropy/cpu/residual_instance.h"

namespace quern::kernels {

struct Isa_avx2;
const ResidualKernels& residual_kernels_avx2() { return ResidualInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

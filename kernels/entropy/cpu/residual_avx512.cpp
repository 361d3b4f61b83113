// Kernels that code residuals, compiled for avx512.
#include "kernels/entropy/cpu/residual_instance.h"

namespace quern::kernels {

struct Isa_avx512;
const ResidualKernels& residual_kernels_avx512() { return ResidualInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

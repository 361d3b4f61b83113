// Kernels that code residuals, compiled for baseline.
#include "kernels/entropy/cpu/residual_instance.h"

namespace quern::kernels {

struct Isa_baseline;
const ResidualKernels& residual_kernels_baseline() { return ResidualInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

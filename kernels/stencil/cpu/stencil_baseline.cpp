// Stencil kernels compiled for baseline.
#include "kernels/stencil/cpu/instance.h"

namespace quern::kernels {

struct Isa_baseline;
const StencilKernels& stencil_kernels_baseline() { return StencilInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

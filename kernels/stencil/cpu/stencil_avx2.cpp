// Stencil kernels compiled for avx2.
#include "kernels/stencil/cpu/instance.h"

namespace quern::kernels {

struct Isa_avx2;
const StencilKernels& stencil_kernels_avx2() { return StencilInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

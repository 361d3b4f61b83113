// Stencil kernels compiled for avx512.
#include "kernels/cpu/stencil_instance.h"

namespace quern::kernels {

struct Isa_avx512;
const StencilKernels& stencil_kernels_avx512() { return StencilInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

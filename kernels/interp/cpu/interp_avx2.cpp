// Interp kernels compiled for avx2.
#include "kernels/interp/cpu/instance.h"

namespace quern::kernels {

struct Isa_avx2;
const InterpKernels& interp_kernels_avx2() { return InterpInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

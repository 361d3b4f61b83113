// Interp kernels compiled for avx512.
#include "kernels/interp/cpu/instance.h"

namespace quern::kernels {

struct Isa_avx512;
const InterpKernels& interp_kernels_avx512() { return InterpInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

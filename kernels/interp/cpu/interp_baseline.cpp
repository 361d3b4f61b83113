// Interp kernels compiled for baseline.
#include "kernels/interp/cpu/instance.h"

namespace quern::kernels {

struct Isa_baseline;
const InterpKernels& interp_kernels_baseline() { return InterpInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

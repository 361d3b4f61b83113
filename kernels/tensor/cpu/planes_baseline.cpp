// Kernels for byte planes compiled for baseline.
#include "kernels/tensor/cpu/planes_instance.h"

namespace quern::kernels {

struct Isa_baseline;
const PlaneKernels& plane_kernels_baseline() { return PlaneInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

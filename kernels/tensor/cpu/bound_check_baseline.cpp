// The quick check of decoded tensors compiled for baseline.
#include "kernels/tensor/cpu/bound_check_instance.h"

namespace quern::kernels {

struct Isa_baseline;
const BoundCheckKernels& bound_check_kernels_baseline() { return BoundCheckInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

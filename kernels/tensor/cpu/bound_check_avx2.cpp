// The quick check of decoded tensors compiled for avx2.
#include "kernels/tensor/cpu/bound_check_instance.h"

namespace quern::kernels {

struct Isa_avx2;
const BoundCheckKernels& bound_check_kernels_avx2() { return BoundCheckInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

// The quick check of decoded tensors compiled for avx512.
#include "kernels/tensor/cpu/bound_check_instance.h"

namespace quern::kernels {

struct Isa_avx512;
const BoundCheckKernels& bound_check_kernels_avx512() { return BoundCheckInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

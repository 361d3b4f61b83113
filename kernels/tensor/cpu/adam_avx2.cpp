// Adam compiled for avx2.
#include "kernels/tensor/cpu/adam_instance.h"

namespace quern::kernels {

struct Isa_avx2;
const AdamKernels& adam_kernels_avx2() { return AdamInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

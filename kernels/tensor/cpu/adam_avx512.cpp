// Adam compiled for avx512.
#include "kernels/tensor/cpu/adam_instance.h"

namespace quern::kernels {

struct Isa_avx512;
const AdamKernels& adam_kernels_avx512() { return AdamInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

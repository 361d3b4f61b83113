// Moments at rest compiled for avx2.
#include "kernels/tensor/cpu/at_rest/at_rest_instance.h"

namespace quern::kernels {

struct Isa_avx2;
const AtRestKernels& at_rest_kernels_avx2() { return AtRestInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

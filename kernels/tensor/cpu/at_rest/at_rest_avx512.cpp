// Moments at rest compiled for avx512.
#include "kernels/tensor/cpu/at_rest/at_rest_instance.h"

namespace quern::kernels {

struct Isa_avx512;
const AtRestKernels& at_rest_kernels_avx512() { return AtRestInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

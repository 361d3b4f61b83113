// Moments at rest compiled for baseline.
#include "kernels/tensor/cpu/at_rest/at_rest_instance.h"

namespace quern::kernels {

struct Isa_baseline;
const AtRestKernels& at_rest_kernels_baseline() { return AtRestInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

// Adam compiled for baseline.
#include "kernels/tensor/cpu/adam_instance.h"

namespace quern::kernels {

struct Isa_baseline;
const AdamKernels& adam_kernels_baseline() { return AdamInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

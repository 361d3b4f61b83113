// lorenzo kernels compiled for baseline.
#include "kernels/cpu/lorenzo_instance.h"

namespace quern::kernels {

struct Isa_baseline;
const LorenzoKernels& lorenzo_kernels_baseline() { return LorenzoInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

// lorenzo kernels compiled for baseline.
#include "kernels/lorenzo/cpu/instance.h"

namespace quern::kernels {

struct Isa_baseline;
const LorenzoKernels& lorenzo_kernels_baseline() { return LorenzoInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

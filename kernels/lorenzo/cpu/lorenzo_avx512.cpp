// lorenzo kernels compiled for avx512.
#include "kernels/lorenzo/cpu/instance.h"

namespace quern::kernels {

struct Isa_avx512;
const LorenzoKernels& lorenzo_kernels_avx512() { return LorenzoInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

// lorenzo kernels compiled for avx2.
#include "kernels/lorenzo/cpu/instance.h"

namespace quern::kernels {

struct Isa_avx2;
const LorenzoKernels& lorenzo_kernels_avx2() { return LorenzoInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

// lorenzo kernels compiled for avx2.
#include "kernels/cpu/lorenzo_instance.h"

namespace quern::kernels {

struct Isa_avx2;
const LorenzoKernels& lorenzo_kernels_avx2() { return LorenzoInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

// lorenzo kernels compiled for avx512.
#include "kernels/cpu/lorenzo_instance.h"

namespace quern::kernels {

struct Isa_avx512;
const LorenzoKernels& lorenzo_kernels_avx512() { return LorenzoInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

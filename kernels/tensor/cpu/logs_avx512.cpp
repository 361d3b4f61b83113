// Kernels for second moments in log space compiled for avx512.
#include "kernels/tensor/cpu/logs_instance.h"

namespace quern::kernels {

struct Isa_avx512;
const TensorLogKernels& tensor_log_kernels_avx512() { return TensorLogInstance<Isa_avx512>::kKernels; }

}  // namespace quern::kernels

// Kernels for second moments in log space compiled for avx2.
#include "kernels/tensor/cpu/logs_instance.h"

namespace quern::kernels {

struct Isa_avx2;
const TensorLogKernels& tensor_log_kernels_avx2() { return TensorLogInstance<Isa_avx2>::kKernels; }

}  // namespace quern::kernels

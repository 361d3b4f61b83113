// Kernels for second moments in log space compiled for baseline.
#include "kernels/tensor/cpu/logs_instance.h"

namespace quern::kernels {

struct Isa_baseline;
const TensorLogKernels& tensor_log_kernels_baseline() { return TensorLogInstance<Isa_baseline>::kKernels; }

}  // namespace quern::kernels

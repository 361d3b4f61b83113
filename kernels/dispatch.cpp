// Which instruction set to use: asked of the processor, never assumed.
#include "kernels/common/cpu/isa.h"
#include "kernels/lorenzo/cpu/lorenzo.h"
#include "kernels/stencil/cpu/stencil.h"
#include "kernels/tensor/cpu/adam.h"
#include "kernels/tensor/cpu/bound_check.h"
#include "kernels/tensor/cpu/bounds.h"
#include "kernels/tensor/cpu/logs.h"
#include "kernels/tensor/cpu/planes.h"
#include "kernels/tensor/cpu/residuals.h"

namespace quern::kernels {

const AdamKernels& adam_kernels_baseline();
const BoundCheckKernels& bound_check_kernels_baseline();
const LorenzoKernels& lorenzo_kernels_baseline();
const PlaneKernels& plane_kernels_baseline();
const StencilKernels& stencil_kernels_baseline();
const TensorBoundKernels& tensor_bound_kernels_baseline();
const TensorLogKernels& tensor_log_kernels_baseline();
const TensorResidualKernels& tensor_residual_kernels_baseline();
#if defined(QUERN_X86_64)
const AdamKernels& adam_kernels_avx2();
const AdamKernels& adam_kernels_avx512();
const BoundCheckKernels& bound_check_kernels_avx2();
const LorenzoKernels& lorenzo_kernels_avx2();
const BoundCheckKernels& bound_check_kernels_avx512();
const LorenzoKernels& lorenzo_kernels_avx512();
const PlaneKernels& plane_kernels_avx2();
const PlaneKernels& plane_kernels_avx512();
const StencilKernels& stencil_kernels_avx2();
const StencilKernels& stencil_kernels_avx512();
const TensorBoundKernels& tensor_bound_kernels_avx2();
const TensorLogKernels& tensor_log_kernels_avx2();
const TensorResidualKernels& tensor_residual_kernels_avx2();
const TensorBoundKernels& tensor_bound_kernels_avx512();
const TensorLogKernels& tensor_log_kernels_avx512();
const TensorResidualKernels& tensor_residual_kernels_avx512();
#endif

const char* isa_name(IsaLevel level) {
  switch (level) {
    case IsaLevel::baseline: return "baseline";
    case IsaLevel::avx2: return "avx2";
    case IsaLevel::avx512: return "avx512";
  }
  return "unknown";
}

bool isa_available(IsaLevel level) {
  if (level == IsaLevel::baseline) return true;
#if defined(QUERN_X86_64)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  if (level == IsaLevel::avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt");
#else
  return false;
#endif
}

IsaLevel best_isa() {
  if (isa_available(IsaLevel::avx512)) return IsaLevel::avx512;
  if (isa_available(IsaLevel::avx2)) return IsaLevel::avx2;
  return IsaLevel::baseline;
}

const AdamKernels& adam_kernels(IsaLevel level) {
#if defined(QUERN_X86_64)
  if (level == IsaLevel::avx512) return adam_kernels_avx512();
  if (level == IsaLevel::avx2) return adam_kernels_avx2();
#endif
  (void)level;
  return adam_kernels_baseline();
}

const BoundCheckKernels& bound_check_kernels(IsaLevel level) {
#if defined(QUERN_X86_64)
  if (level == IsaLevel::avx512) return bound_check_kernels_avx512();
  if (level == IsaLevel::avx2) return bound_check_kernels_avx2();
#endif
  (void)level;
  return bound_check_kernels_baseline();
}

const LorenzoKernels& lorenzo_kernels(IsaLevel level) {
#if defined(QUERN_X86_64)
  if (level == IsaLevel::avx512) return lorenzo_kernels_avx512();
  if (level == IsaLevel::avx2) return lorenzo_kernels_avx2();
#endif
  (void)level;
  return lorenzo_kernels_baseline();
}

const PlaneKernels& plane_kernels(IsaLevel level) {
#if defined(QUERN_X86_64)
  // Processors before Ice Lake have AVX-512 without the instructions that sort bytes.
  if (level == IsaLevel::avx512 && __builtin_cpu_supports("avx512vbmi2")) return plane_kernels_avx512();
  if (level != IsaLevel::baseline) return plane_kernels_avx2();
#endif
  (void)level;
  return plane_kernels_baseline();
}

const StencilKernels& stencil_kernels(IsaLevel level) {
#if defined(QUERN_X86_64)
  if (level == IsaLevel::avx512) return stencil_kernels_avx512();
  if (level == IsaLevel::avx2) return stencil_kernels_avx2();
#endif
  (void)level;
  return stencil_kernels_baseline();
}

const TensorBoundKernels& tensor_bound_kernels(IsaLevel level) {
#if defined(QUERN_X86_64)
  if (level == IsaLevel::avx512) return tensor_bound_kernels_avx512();
  if (level == IsaLevel::avx2) return tensor_bound_kernels_avx2();
#endif
  (void)level;
  return tensor_bound_kernels_baseline();
}

const TensorLogKernels& tensor_log_kernels(IsaLevel level) {
#if defined(QUERN_X86_64)
  if (level == IsaLevel::avx512) return tensor_log_kernels_avx512();
  if (level == IsaLevel::avx2) return tensor_log_kernels_avx2();
#endif
  (void)level;
  return tensor_log_kernels_baseline();
}

const TensorResidualKernels& tensor_residual_kernels(IsaLevel level) {
#if defined(QUERN_X86_64)
  if (level == IsaLevel::avx512) return tensor_residual_kernels_avx512();
  if (level == IsaLevel::avx2) return tensor_residual_kernels_avx2();
#endif
  (void)level;
  return tensor_residual_kernels_baseline();
}

}  // namespace quern::kernels

// Which instruction set to use: asked of the processor, never assumed.
#include "kernels/common/cpu/isa.h"
#include "kernels/entropy/cpu/residual_kernels.h"
#include "kernels/interp/cpu/interp.h"
#include "kernels/lorenzo/cpu/lorenzo.h"
#include "kernels/network/cpu/products.h"
#include "kernels/stencil/cpu/stencil.h"
#include "kernels/tensor/cpu/adam.h"
#include "kernels/tensor/cpu/at_rest/at_rest.h"
#include "kernels/tensor/cpu/bound_check.h"
#include "kernels/tensor/cpu/bounds.h"
#include "kernels/tensor/cpu/logs.h"
#include "kernels/tensor/cpu/planes.h"
#include "kernels/tensor/cpu/residuals.h"

// Each subject's table of functions for one instruction set, nullptr for a set that is not compiled
// (kernels/cpu.cmake).
#if defined(QUERN_HAVE_AVX2)
#define QUERN_AVX2(name) &name##_avx2
#else
#define QUERN_AVX2(name) nullptr
#endif
#if defined(QUERN_HAVE_AVX512)
#define QUERN_AVX512(name) &name##_avx512
#else
#define QUERN_AVX512(name) nullptr
#endif
#define QUERN_DEFINE_DISPATCH(Table, name)                                             \
  const Table& name##_baseline();                                                      \
  const Table& name##_avx2();                                                          \
  const Table& name##_avx512();                                                        \
  const Table& name(IsaLevel level) {                                                  \
    return pick<Table>(level, &name##_baseline, QUERN_AVX2(name), QUERN_AVX512(name)); \
  }

namespace quern::kernels {
namespace {

template <class Table>
using Getter = const Table& (*)();

/// The table of a level; of the best compiled one below it where that is missing.
template <class Table>
const Table& pick(IsaLevel level, Getter<Table> baseline, Getter<Table> avx2, Getter<Table> avx512) {
  if (level == IsaLevel::avx512 && avx512 != nullptr) return avx512();
  if (level != IsaLevel::baseline && avx2 != nullptr) return avx2();
  return baseline();
}

#if defined(QUERN_HAVE_AVX2) || defined(QUERN_HAVE_AVX512)
bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}
#endif

#if defined(QUERN_HAVE_AVX512)
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt");
}

/// Processors before Ice Lake have AVX-512 without the instructions that sort bytes.
bool sorts_bytes() { return __builtin_cpu_supports("avx512vbmi2"); }
#else
bool sorts_bytes() { return false; }
#endif

}  // namespace

const char* isa_name(IsaLevel level) {
  switch (level) {
    case IsaLevel::baseline: return "baseline";
    case IsaLevel::avx2: return "avx2";
    case IsaLevel::avx512: return "avx512";
  }
  return "unknown";
}

bool isa_available(IsaLevel level) {
#if defined(QUERN_HAVE_AVX512)
  if (level == IsaLevel::avx512) return has_avx512();
#endif
#if defined(QUERN_HAVE_AVX2)
  if (level == IsaLevel::avx2) return has_avx2();
#endif
  return level == IsaLevel::baseline;
}

IsaLevel best_isa() {
  if (isa_available(IsaLevel::avx512)) return IsaLevel::avx512;
  if (isa_available(IsaLevel::avx2)) return IsaLevel::avx2;
  return IsaLevel::baseline;
}

QUERN_DEFINE_DISPATCH(AdamKernels, adam_kernels)
QUERN_DEFINE_DISPATCH(AtRestKernels, at_rest_kernels)
QUERN_DEFINE_DISPATCH(BoundCheckKernels, bound_check_kernels)
QUERN_DEFINE_DISPATCH(InterpKernels, interp_kernels)
QUERN_DEFINE_DISPATCH(LorenzoKernels, lorenzo_kernels)
QUERN_DEFINE_DISPATCH(ResidualKernels, residual_kernels)
QUERN_DEFINE_DISPATCH(StencilKernels, stencil_kernels)
QUERN_DEFINE_DISPATCH(TensorBoundKernels, tensor_bound_kernels)
QUERN_DEFINE_DISPATCH(TensorLogKernels, tensor_log_kernels)
QUERN_DEFINE_DISPATCH(TensorResidualKernels, tensor_residual_kernels)

const PlaneKernels& plane_kernels_baseline();
const PlaneKernels& plane_kernels_avx2();
const PlaneKernels& plane_kernels_avx512();
const PlaneKernels& plane_kernels(IsaLevel level) {
  if (level == IsaLevel::avx512 && !sorts_bytes()) level = IsaLevel::avx2;
  return pick<PlaneKernels>(level, &plane_kernels_baseline, QUERN_AVX2(plane_kernels), QUERN_AVX512(plane_kernels));
}

const NetworkKernels& network_kernels_baseline();
const NetworkKernels& network_kernels_avx2();
const NetworkKernels& network_kernels(IsaLevel level) {
  return pick<NetworkKernels>(level, &network_kernels_baseline, QUERN_AVX2(network_kernels), nullptr);
}

}  // namespace quern::kernels

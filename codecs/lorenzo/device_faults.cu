// The kernel that holds arrays against decoded values, element by element. It quantizes the array's elements once more:
// where an element is not kept bit for bit, the decoded one must be the one of its code.
#include "codecs/lorenzo/device_faults.cuh"

#include <algorithm>
#include <type_traits>

#include "kernels/common/cuda/array_blocks.cuh"
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/quantizers.h"
#include "kernels/lorenzo/chunk_task.h"
#include "libcompress/core/element_of.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkRules;
using kernels::DeviceArray;
using kernels::kArrayThreads;
using kernels::QuantizerKind;
using kernels::Vector;

/// Streams whose values are decoded a second time: any difference is a fault.
struct SameBits {
  template <class Bits>
  __device__ __forceinline__ bool clears(Bits, Bits) const {
    return false;
  }
  template <class Bits>
  __device__ __forceinline__ bool holds(Bits, Bits) const {
    return false;
  }
};

/// Streams that were written. Where a bound came out as no loss at all, any difference is a fault too.
template <class Q>
struct SameCode {
  using Bits = typename Q::Bits;
  static constexpr QuantizerKind kKind = Q::kHasSign ? QuantizerKind::pointwise : QuantizerKind::absolute;
  __device__ __forceinline__ explicit SameCode(const ChunkRules& rules)
      : q(kernels::make_quantizer<Q>(rules.params)), lossy(rules.quantizer == kKind) {}

  static __device__ __forceinline__ bool sign(Bits x) {
    if constexpr (Q::kHasSign) return Q::sign(x);
    return false;
  }
  /// Whether y is what an accepted x decodes to. May say no where holds() says yes.
  __device__ __forceinline__ bool clears(Bits x, Bits y) const {
    typename Q::Word code = 0;
    bool accepted = false;
    if constexpr (requires { q.encode_pattern(x, code); }) {
      accepted = q.encode_pattern(x, code);
      code -= Q::kZeroPattern;
    } else {
      accepted = q.encode(x, code);
    }
    return lossy & accepted & (q.decode(code, sign(x)) == y);
  }
  __device__ __forceinline__ bool holds(Bits x, Bits y) const {
    typename Q::Word code = 0;
    const bool accepted = q.encode(x, code) || q.accepts_exactly(x);
    return lossy && accepted && q.decode(code, sign(x)) == y;
  }

  Q q;
  bool lossy;
};

/// What one thread reads.
template <class Bits, class Rule>
class Holder {
 public:
  static constexpr unsigned kElems = kernels::kVectorElems<Bits>;

  __device__ __forceinline__ Holder(const Rule& rule, const DeviceArray<Bits>& original,
                                    const DeviceArray<Bits>& decoded)
      : rule_(rule), original_(original), decoded_(decoded) {}

  __device__ __forceinline__ void vectors(std::uint64_t first, const Vector (&pair)[2]) {
    std::uint32_t doubts = 0;
    kernels::unroll<kElems>([&](auto i) {
      const auto x = kernels::vector_element<Bits>(pair[0], i);
      const auto y = kernels::vector_element<Bits>(pair[1], i);
      doubts |= static_cast<std::uint32_t>((x != y) & !rule_.clears(x, y)) << i;
    });
    // Few, and loaded again because registers have no index.
    for (; doubts != 0; doubts &= doubts - 1) {
      const std::uint64_t at = first + (static_cast<unsigned>(__ffs(static_cast<int>(doubts))) - 1);
      element(at, original_.element(at), decoded_.element(at));
    }
  }
  __device__ __forceinline__ void element(std::uint64_t, Bits x, Bits y) {
    fault_ = fault_ || (x != y && !rule_.holds(x, y));
  }
  __device__ __forceinline__ bool fault() const { return fault_; }

 private:
  const Rule& rule_;
  const DeviceArray<Bits>& original_;
  const DeviceArray<Bits>& decoded_;
  bool fault_ = false;
};

/// Vectors of each array that a thread has on their way at a time: fewer where code for many elements would be long.
template <class Bits>
inline constexpr unsigned kAhead = sizeof(Bits) < 4 ? sizeof(Bits) : 4;

/// The share of one of `step` CTAs of arrays that both begin at multiples of 16 bytes.
template <class Bits, class Rule>
__device__ __forceinline__ void hold_aligned(Holder<Bits, Rule>& holder, const void* original, const void* decoded,
                                             std::uint64_t elems, unsigned first, unsigned step) {
  constexpr unsigned kElems = kernels::kVectorElems<Bits>;
  const auto* const x = static_cast<const Vector*>(original);
  const auto* const y = static_cast<const Vector*>(decoded);
  const std::uint64_t vectors = elems / kElems;
  constexpr unsigned kEach = kAhead<Bits> * kArrayThreads;
  for (std::uint64_t begin = std::uint64_t{first} * kEach; begin < vectors; begin += std::uint64_t{step} * kEach) {
    Vector pairs[kAhead<Bits>][2];
    kernels::unroll<kAhead<Bits>>([&](auto k) {
      const std::uint64_t at = begin + k * kArrayThreads + threadIdx.x;
      pairs[k][0] = at < vectors ? x[at] : Vector{};
      pairs[k][1] = at < vectors ? y[at] : Vector{};
    });
    kernels::unroll<kAhead<Bits>>(
        [&](auto k) { holder.vectors((begin + k * kArrayThreads + threadIdx.x) * kElems, pairs[k]); });
  }
}

/// Called by one of `step` CTAs: whether something differs in its share of a pair of arrays.
template <class Bits, class Rule>
__device__ __forceinline__ bool has_fault(const Rule& rule, const void* original, const void* decoded,
                                          std::uint64_t elems, unsigned first, unsigned step) {
  const DeviceArray<Bits> x(original);
  const DeviceArray<Bits> y(decoded);
  Holder<Bits, Rule> holder(rule, x, y);
  // The values that were decoded a second time begin where a part of a workspace does.
  if (reinterpret_cast<std::uintptr_t>(original) % sizeof(Vector) == 0) {
    hold_aligned(holder, original, decoded, elems, first, step);
    const std::uint64_t behind = elems / Holder<Bits, Rule>::kElems * Holder<Bits, Rule>::kElems + threadIdx.x;
    if (first == 0 && behind < elems) holder.element(behind, x.element(behind), y.element(behind));
  } else {
    for (std::uint64_t i = std::uint64_t{first} * kArrayThreads + threadIdx.x; i < elems;
         i += std::uint64_t{step} * kArrayThreads)
      holder.element(i, x.element(i), y.element(i));
  }
  return holder.fault();
}

/// `ctas` CTAs for each array.
template <class Bits, class MakeRule>
__device__ __forceinline__ void hold_arrays(const cuda::FaultPlaces& places, unsigned ctas, const MakeRule& make_rule) {
  const unsigned item = blockIdx.x / ctas;
  if (places.read[item].status != StatusCode::ok) return;
  const auto& arrays = places.arrays;
  const void* const original = arrays.arrays != nullptr ? arrays.arrays[item] : arrays.array;
  const auto rule = make_rule(item);
  if (has_fault<Bits>(rule, original, places.decoded + item * places.decoded_stride, places.elems, blockIdx.x % ctas,
                      ctas))
    atomicOr(places.faults + item, 1u);
}

template <class Bits>
__global__ void __launch_bounds__(kArrayThreads, 3)
    hold_bits(const __grid_constant__ cuda::FaultPlaces places, unsigned ctas) {
  hold_arrays<Bits>(places, ctas, [](unsigned) { return SameBits(); });
}

template <class Q>
__global__ void __launch_bounds__(kArrayThreads, 3)
    hold_codes(const __grid_constant__ cuda::FaultPlaces places, unsigned ctas) {
  hold_arrays<typename Q::Bits>(places, ctas, [&](unsigned item) {
    return SameCode<Q>(*reinterpret_cast<const ChunkRules*>(places.written[item].codec_state));
  });
}

cudaError_t launch(void (*kernel)(const cuda::FaultPlaces, unsigned), const cuda::FaultPlaces& places,
                   cudaStream_t queue) {
  const std::uint64_t blocks = kernels::array_blocks(places.elems, dtype_bytes(places.dtype));
  const unsigned ctas = kernels::array_ctas(blocks, std::max(1u, kernels::kMaxArrayCtas / places.count));
  return kernels::launch(kernel, {ctas * places.count, kArrayThreads}, queue, places, ctas);
}

}  // namespace

cudaError_t find_faults_async(const cuda::FaultPlaces& places, cudaStream_t queue) {
  if (places.count == 0 || places.elems == 0) return cudaSuccess;
  // Losslessly written streams are like streams that were read.
  if (places.written == nullptr || places.bound == BoundKind::lossless) {
    switch (dtype_bytes(places.dtype)) {
      case 1: return launch(&hold_bits<std::uint8_t>, places, queue);
      case 2: return launch(&hold_bits<std::uint16_t>, places, queue);
      case 4: return launch(&hold_bits<std::uint32_t>, places, queue);
      default: return launch(&hold_bits<std::uint64_t>, places, queue);
    }
  }
  const auto kind = places.bound == BoundKind::pwrel ? QuantizerKind::pointwise : QuantizerKind::absolute;
  cudaError_t error = cudaErrorInvalidValue;
  kernels::with_quantizer(element_of(places.dtype), kind, [&]<class Q, class Exact>() {
    if constexpr (!std::is_same_v<Q, Exact>) error = launch(&hold_codes<Q>, places, queue);
  });
  return error;
}

}  // namespace quern::codec::lorenzo

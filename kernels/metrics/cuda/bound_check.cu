// The check of a bound: threads clear most elements in the working type and check the others exactly. Counts and the
// lowest index go to the result by atomics, whose order does not matter; then one thread describes that element.
#include "kernels/metrics/cuda/bound_check_cuda.h"

#include <algorithm>

#include "kernels/common/cuda/array_blocks.cuh"
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/reduce.cuh"
#include "kernels/common/cuda/shared_memory.cuh"

namespace quern::kernels {
namespace {

/// All zero to begin with. The lowest index is collected as the largest complement.
struct Findings {
  std::uint64_t violations = 0;
  std::uint64_t specials_lost = 0;
  std::uint64_t complement_of_first = 0;
};

/// What one thread has found.
template <class E>
class Finder {
 public:
  using Bits = typename E::Bits;
  static constexpr unsigned kElems = kVectorElems<Bits>;

  __device__ __forceinline__ Finder(const verifier::BoundVerifier<E>& verifier, const DeviceArray<Bits>& original,
                                    const DeviceArray<Bits>& reconstructed)
      : verifier_(verifier), original_(original), reconstructed_(reconstructed) {}

  __device__ __forceinline__ void vectors(std::uint64_t first, const Vector (&pair)[2]) {
    std::uint32_t doubts = 0;
    unroll<kElems>([&](auto i) {
      const auto x = vector_element<Bits>(pair[0], i);
      const auto y = vector_element<Bits>(pair[1], i);
      doubts |= static_cast<std::uint32_t>(x != y && !verifier_.clears_if_no_fill(x, y)) << i;
    });
    for (const std::uint64_t fill : verifier_.validity().fill_bits())
      unroll<kElems>([&](auto i) {
        const auto x = vector_element<Bits>(pair[0], i);
        const bool lost =
            verifier::is_same_value<E>(x, static_cast<Bits>(fill)) && x != vector_element<Bits>(pair[1], i);
        doubts |= static_cast<std::uint32_t>(lost) << i;
      });
    // Few, and loaded again because registers have no index.
    for (; doubts != 0; doubts &= doubts - 1) {
      const std::uint64_t at = first + (static_cast<unsigned>(__ffs(static_cast<int>(doubts))) - 1);
      check(at, original_.element(at), reconstructed_.element(at));
    }
  }

  __device__ __forceinline__ void element(std::uint64_t at, Bits original, Bits reconstructed) {
    if (!verifier_.clears(original, reconstructed)) check(at, original, reconstructed);
  }

  __device__ __forceinline__ const Findings& result() const { return findings_; }

 private:
  __device__ __forceinline__ void check(std::uint64_t at, Bits original, Bits reconstructed) {
    const verifier::Verdict verdict = verifier_.verdict(original, reconstructed);
    if (verdict == verifier::Verdict::kept) return;
    // A thread's indices ascend.
    if (findings_.violations == 0) findings_.complement_of_first = ~at;
    ++findings_.violations;
    findings_.specials_lost += verdict == verifier::Verdict::special_lost ? 1 : 0;
  }

  const verifier::BoundVerifier<E>& verifier_;
  const DeviceArray<Bits>& original_;
  const DeviceArray<Bits>& reconstructed_;
  Findings findings_;
};

using FindShared = ReduceShared<Findings, kArrayThreads>;

/// `out->first_index` is a complement until describe_first turns it round.
template <class E>
__global__ void __launch_bounds__(kArrayThreads, 3)
    find_violations(const void* original, const void* reconstructed, std::uint64_t elems, verifier::Bound bound,
                    const __grid_constant__ FillValues fills, CudaBoundCheck* out) {
  using Bits = typename E::Bits;
  const DeviceArray<Bits> x(original);
  const DeviceArray<Bits> y(reconstructed);
  const verifier::BoundVerifier<E> verifier(bound, verifier::Validity<E>(fills.view()));
  Finder<E> finder(verifier, x, y);
  const std::uint64_t blocks = array_blocks(elems, sizeof(Bits));
  for (std::uint64_t block = blockIdx.x; block < blocks; block += gridDim.x) visit_block(block, elems, finder, x, y);
  Findings findings = finder.result();
  reduce_cta<kArrayThreads>(findings, shared_memory<FindShared>(), [](Findings& a, const Findings& b) {
    a.violations += b.violations;
    a.specials_lost += b.specials_lost;
    a.complement_of_first = std::max(a.complement_of_first, b.complement_of_first);
  });
  if (threadIdx.x != 0 || findings.violations == 0) return;
  using Word = unsigned long long;
  static_assert(sizeof(Word) == sizeof(std::uint64_t));
  atomicAdd(reinterpret_cast<Word*>(&out->violations), Word{findings.violations});
  atomicAdd(reinterpret_cast<Word*>(&out->specials_lost), Word{findings.specials_lost});
  atomicMax(reinterpret_cast<Word*>(&out->first_index), Word{findings.complement_of_first});
}

/// One thread.
template <class E>
__global__ void __launch_bounds__(32)
    describe_first(const void* original, const void* reconstructed, CudaBoundCheck* out) {
  using Bits = typename E::Bits;
  if (threadIdx.x != 0 || out->violations == 0) return;
  const std::uint64_t first = ~out->first_index;
  out->first_index = first;
  out->first = verifier::describe<E>(DeviceArray<Bits>(original).element(first),
                                     DeviceArray<Bits>(reconstructed).element(first));
}

}  // namespace

cudaError_t check_bound_async(Element element, const void* original, const void* reconstructed, std::uint64_t elems,
                              const verifier::Bound& bound, const FillValues& fills, CudaBoundCheck* out,
                              cudaStream_t stream, unsigned max_ctas) {
  if (!is_element(element) || !verifier::is_bound_for(element, bound)) return cudaErrorInvalidValue;
  if (max_ctas == 0 || fills.count > FillValues::kMost) return cudaErrorInvalidValue;
  const cudaError_t error = cudaMemsetAsync(out, 0, sizeof *out, stream);
  if (error != cudaSuccess || elems == 0) return error;
  return verifier::visit_element(element, [&](auto type) {
    using E = typename decltype(type)::Element;
    const unsigned ctas = array_ctas(array_blocks(elems, sizeof(typename E::Bits)), max_ctas);
    const cudaError_t found = launch(&find_violations<E>, {ctas, kArrayThreads, sizeof(FindShared)}, stream, original,
                                     reconstructed, elems, bound, fills, out);
    if (found != cudaSuccess) return found;
    return launch(&describe_first<E>, {1, 32}, stream, original, reconstructed, out);
  });
}

}  // namespace quern::kernels

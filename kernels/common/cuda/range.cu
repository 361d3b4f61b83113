// Range of an array: each thread keeps the extreme keys of what it sees, a CTA's go to the result by atomic maxima.
#include "kernels/common/cuda/range_cuda.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/common/cuda/array_blocks.cuh"
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/reduce.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/element_keys.h"

namespace quern::kernels {
namespace {

/// The extreme keys of the elements that one thread has seen.
template <class Traits>
class SeenKeys {
 public:
  using Bits = typename Traits::Bits;
  using Key = typename Traits::Key;
  /// What machines compare: 32 or 64 bits.
  using Wide =
      std::conditional_t<sizeof(Key) == 8, Key, std::conditional_t<std::is_signed_v<Key>, std::int32_t, std::uint32_t>>;
  static constexpr unsigned kElems = kVectorElems<Bits>;

  __device__ __forceinline__ explicit SeenKeys(const FillValues& fills) : fills_(fills) {}

  /// Most vectors hold valid elements only, which their own range tells.
  __device__ __forceinline__ void vectors(std::uint64_t, const Vector (&vector)[1]) {
    Wide low = std::numeric_limits<Wide>::max();
    Wide high = std::numeric_limits<Wide>::lowest();
    unroll<kElems>([&](auto i) {
      const Wide key = Traits::key(vector_element<Bits>(vector[0], i));
      low = std::min(low, key);
      high = std::max(high, key);
    });
    if (fills_.count == 0 && all_finite(low, high)) {
      low_ = std::min(low_, low);
      high_ = std::max(high_, high);
      valid_ += kElems;
    } else {
      add_valid(vector[0]);
    }
  }

  __device__ __forceinline__ void element(std::uint64_t, Bits bits) {
    bool valid = Traits::finite(bits);
    for (unsigned f = 0; f < fills_.count; ++f) valid = valid && !Traits::same(bits, static_cast<Bits>(fills_.bits[f]));
    add(bits, valid);
  }

  __device__ __forceinline__ RangeKeys result() const {
    if (valid_ == 0) return {};
    return {~ordered_key<Traits>(static_cast<Key>(low_)), ordered_key<Traits>(static_cast<Key>(high_)), valid_};
  }

 private:
  static __device__ __forceinline__ bool all_finite(Wide low, Wide high) {
    if constexpr (requires { Traits::kInfinity; }) {
      constexpr Wide kAbove = Traits::key(Traits::kInfinity);
      constexpr Wide kBelow = Traits::key(static_cast<Bits>(Traits::kInfinity | Traits::kSign));
      return low > kBelow && high < kAbove;
    } else {
      return true;
    }
  }

  __device__ __forceinline__ void add_valid(const Vector& vector) {
    std::uint32_t invalid = 0;
    unroll<kElems>(
        [&](auto i) { invalid |= static_cast<std::uint32_t>(!Traits::finite(vector_element<Bits>(vector, i))) << i; });
    for (unsigned f = 0; f < fills_.count; ++f) {
      const auto fill = static_cast<Bits>(fills_.bits[f]);
      unroll<kElems>([&](auto i) {
        invalid |= static_cast<std::uint32_t>(Traits::same(vector_element<Bits>(vector, i), fill)) << i;
      });
    }
    unroll<kElems>([&](auto i) { add(vector_element<Bits>(vector, i), (invalid >> i & 1) == 0); });
  }

  __device__ __forceinline__ void add(Bits bits, bool valid) {
    const Wide key = Traits::key(bits);
    low_ = std::min(low_, valid ? key : low_);
    high_ = std::max(high_, valid ? key : high_);
    valid_ += valid ? 1 : 0;
  }

  const FillValues& fills_;
  Wide low_ = std::numeric_limits<Wide>::max();
  Wide high_ = std::numeric_limits<Wide>::lowest();
  std::uint64_t valid_ = 0;
};

using RangeShared = ReduceShared<RangeKeys, kArrayThreads>;

/// `ctas` CTAs for each array.
template <class Traits>
__global__ void __launch_bounds__(kArrayThreads) find_range(const __grid_constant__ SameArrays arrays, unsigned ctas,
                                                            const __grid_constant__ FillValues fills, RangeKeys* out) {
  using Bits = typename Traits::Bits;
  const unsigned item = blockIdx.x / ctas;
  const DeviceArray<Bits> array(arrays.at != nullptr ? arrays.at[item] : arrays.only);
  SeenKeys<Traits> seen(fills);
  const std::uint64_t blocks = array_blocks(arrays.elems, sizeof(Bits));
  for (std::uint64_t block = blockIdx.x % ctas; block < blocks; block += ctas)
    visit_block(block, arrays.elems, seen, array);
  RangeKeys keys = seen.result();
  reduce_cta<kArrayThreads>(keys, shared_memory<RangeShared>(), [](RangeKeys& a, const RangeKeys& b) {
    a.complement_of_min = std::max(a.complement_of_min, b.complement_of_min);
    a.max = std::max(a.max, b.max);
    a.valid += b.valid;
  });
  if (threadIdx.x != 0 || keys.valid == 0) return;
  using Word = unsigned long long;
  static_assert(sizeof(Word) == sizeof(std::uint64_t));
  RangeKeys& own = out[item];
  atomicMax(reinterpret_cast<Word*>(&own.complement_of_min), Word{keys.complement_of_min});
  atomicMax(reinterpret_cast<Word*>(&own.max), Word{keys.max});
  atomicAdd(reinterpret_cast<Word*>(&own.valid), Word{keys.valid});
}

}  // namespace

cudaError_t find_ranges_async(Element element, const SameArrays& arrays, const FillValues& fills, RangeKeys* out,
                              cudaStream_t stream, unsigned max_ctas) {
  if (!is_element(element) || max_ctas == 0 || fills.count > FillValues::kMost) return cudaErrorInvalidValue;
  const cudaError_t error = cudaMemsetAsync(out, 0, arrays.count * sizeof *out, stream);
  if (error != cudaSuccess || arrays.elems == 0 || arrays.count == 0) return error;
  return with_element(element, [&](auto traits) {
    using Traits = decltype(traits);
    const std::uint64_t blocks = array_blocks(arrays.elems, sizeof(typename Traits::Bits));
    const unsigned ctas = array_ctas(blocks, std::max(1u, max_ctas / arrays.count));
    return launch(&find_range<Traits>, {ctas * arrays.count, kArrayThreads, sizeof(RangeShared)}, stream, arrays, ctas,
                  fills, out);
  });
}

cudaError_t find_range_async(Element element, const void* in, std::uint64_t elems, const FillValues& fills,
                             RangeKeys* out, cudaStream_t stream, unsigned max_ctas) {
  return find_ranges_async(element, {nullptr, in, 1, elems}, fills, out, stream, max_ctas);
}

}  // namespace quern::kernels

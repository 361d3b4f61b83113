// How kernels that look at every element walk the blocks of arrays: 16 bytes to a thread at a time. Which thread sees
// which element in which order depends on the element's index alone, not on the grid or on addresses.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/common/cuda/array_blocks.h"
#include "kernels/common/unroll.h"

namespace quern::kernels {

template <class Bits>
inline constexpr std::uint64_t kBlockElems = kBlockBytes / sizeof(Bits);

struct alignas(16) Vector {
  std::uint32_t words[4];
};

template <class Bits>
inline constexpr unsigned kVectorElems = sizeof(Vector) / sizeof(Bits);

/// Element `i`, which is a constant where it matters.
template <class Bits>
__device__ __forceinline__ Bits vector_element(const Vector& vector, unsigned i) {
  if constexpr (sizeof(Bits) == 8) {
    return vector.words[2 * i] | static_cast<std::uint64_t>(vector.words[2 * i + 1]) << 32;
  } else {
    constexpr unsigned kEach = 4 / sizeof(Bits);
    return static_cast<Bits>(vector.words[i / kEach] >> (8 * sizeof(Bits) * (i % kEach)));
  }
}

/// Calls visitor.element(i, x, y) for each pair of elements, `first` being the index of the first.
template <class Bits, class Visitor>
__device__ __forceinline__ void visit_pairs(std::uint64_t first, const Vector (&pair)[2], Visitor& visitor) {
  unroll<kVectorElems<Bits>>(
      [&](auto i) { visitor.element(first + i, vector_element<Bits>(pair[0], i), vector_element<Bits>(pair[1], i)); });
}

/// An array in device memory, at any address.
template <class Bits>
class DeviceArray {
 public:
  __device__ __forceinline__ explicit DeviceArray(const void* data)
      : data_(static_cast<const unsigned char*>(data)),
        misaligned_(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(data) % sizeof(Vector))) {}

  __device__ __forceinline__ Bits element(std::uint64_t i) const {
    const unsigned char* const at = data_ + i * sizeof(Bits);
    if (misaligned_ % sizeof(Bits) == 0) return *reinterpret_cast<const Bits*>(at);
    std::uint64_t bits = 0;
    unroll<sizeof(Bits)>([&](auto k) { bits |= static_cast<std::uint64_t>(at[k]) << (8 * k); });
    return static_cast<Bits>(bits);
  }

  /// 16 bytes from element `first` on, which is a multiple of the elements in a vector.
  __device__ __forceinline__ Vector vector(std::uint64_t first) const {
    const unsigned char* const at = data_ + first * sizeof(Bits);
    if (misaligned_ == 0) return *reinterpret_cast<const Vector*>(at);
    if (misaligned_ % sizeof(Bits) == 0) return gather<Bits>(at);
    return gather<std::uint8_t>(at);
  }

 private:
  template <class Piece>
  static __device__ __forceinline__ Vector gather(const unsigned char* at) {
    Vector vector{};
    unroll<sizeof(Vector) / sizeof(Piece)>([&](auto k) {
      const Piece piece = reinterpret_cast<const Piece*>(at)[k];
      constexpr std::size_t kByte = decltype(k)::value * sizeof(Piece);
      vector.words[kByte / 4] |= static_cast<std::uint32_t>(piece) << (8 * (kByte % 4));
      if constexpr (sizeof(Piece) == 8) vector.words[kByte / 4 + 1] = static_cast<std::uint32_t>(piece >> 32);
    });
    return vector;
  }

  const unsigned char* data_;
  unsigned misaligned_;
};

/// Walks block `block` of arrays of `elems` elements with all threads of the CTA: calls visitor.vectors(first, v) with
/// 16 bytes of each array from element `first` on, and visitor.element(i, x...) for the elements behind the last whole
/// vector. The next vectors are loaded while the present ones are looked at.
template <class Visitor, class Bits, class... More>
__device__ __forceinline__ void visit_block(std::uint64_t block, std::uint64_t elems, Visitor& visitor,
                                            const DeviceArray<Bits>& array, const DeviceArray<More>&... more) {
  constexpr unsigned kElems = kVectorElems<Bits>;
  struct Loaded {
    Vector vectors[1 + sizeof...(More)];
  };
  const std::uint64_t begin = block * kBlockElems<Bits>;
  const std::uint64_t left = elems - begin;
  const auto count = static_cast<unsigned>(left < kBlockElems<Bits> ? left : kBlockElems<Bits>);
  const unsigned whole = count / kElems;
  const auto load = [&](unsigned i) {
    const std::uint64_t at = begin + std::uint64_t{i} * kElems;
    return Loaded{{array.vector(at), more.vector(at)...}};
  };
  Loaded next{};
  if (threadIdx.x < whole) next = load(threadIdx.x);
  rolled(0, (whole + kArrayThreads - 1) / kArrayThreads, [&](unsigned round) {
    const unsigned i = round * kArrayThreads + threadIdx.x;
    if (i >= whole) return;
    const Loaded present = next;
    if (i + kArrayThreads < whole) next = load(i + kArrayThreads);
    visitor.vectors(begin + std::uint64_t{i} * kElems, present.vectors);
  });
  const unsigned behind = whole * kElems + threadIdx.x;
  if (behind < count) visitor.element(begin + behind, array.element(begin + behind), more.element(begin + behind)...);
}

}  // namespace quern::kernels

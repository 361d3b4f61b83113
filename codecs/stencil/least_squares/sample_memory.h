// Memory for the samples of fits: what is lent at first, then the heap's; and what of a block has no samples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include <quern/memory.h>

#include "kernels/stencil/cpu/fit.h"

namespace quern::codec::stencil {

class SampleMemory {
 public:
  /// `lent`: nobody else's while samples are wanted.
  explicit SampleMemory(std::span<std::uint8_t> lent = {}) : memory_(lent.data(), lent.size(), current_memory()) {}

  /// `count` elements, 64-byte aligned, uninitialised. May throw std::bad_alloc.
  template <class T>
  T* take(std::size_t count) {
    return static_cast<T*>(memory_.allocate(count * sizeof(T), kAlign));
  }
  /// Forgets all that was taken.
  void give_back() { memory_.release(); }

 private:
  static constexpr std::size_t kAlign = 64;
  std::pmr::monotonic_buffer_resource memory_;
};

/// The bytes of so many elements, as memory to lend.
template <class T>
std::span<std::uint8_t> lend(T* elements, std::size_t count) {
  return {reinterpret_cast<std::uint8_t*>(elements), count * sizeof(T)};
}

/// Sets the places of a block of `count` rows that are behind its samples, `filled` of each row, to 0.
inline void clear_behind(double* rows, std::size_t count, std::size_t filled) {
  if (filled == kernels::kSampleBlock) return;
  for (std::size_t k = 0; k < count; ++k)
    std::fill(rows + k * kernels::kSampleBlock + filled, rows + (k + 1) * kernels::kSampleBlock, 0.0);
}

}  // namespace quern::codec::stencil

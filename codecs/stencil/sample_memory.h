// Memory for the samples of fits: what is lent at first, then the heap's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include <quern/memory.h>

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

}  // namespace quern::codec::stencil

// One piece of memory cut into parts that begin at multiples of 256 bytes: first ask for every part, then bind the
// memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::cuda {

inline constexpr std::uint64_t kPartAlignment = 256;

/// What a part of so many bytes takes.
constexpr std::uint64_t aligned_part(std::uint64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

/// A part, as its offset.
template <class T>
struct Part {
  std::uint64_t offset = 0;
  T* at(std::uint8_t* memory) const { return reinterpret_cast<T*>(memory + offset); }
};

class Workspace {
 public:
  template <class T>
  Part<T> add(std::uint64_t count) {
    const Part<T> part{bytes_};
    bytes_ += aligned_part(count * sizeof(T));
    return part;
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_ = 0;
};

}  // namespace quern::cuda

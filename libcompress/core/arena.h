// Cuts scratch memory into arrays. With a null base it only counts, so one function both measures and takes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern {

class Arena {
 public:
  explicit Arena(std::uint8_t* base) : base_(base) {}

  /// `count` elements, 64-byte aligned, uninitialised.
  template <class T>
  T* take(std::size_t count) {
    T* const at = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (count * sizeof(T) + kAlign - 1) / kAlign * kAlign;
    return at;
  }
  std::size_t used() const { return used_; }
  /// `count` elements that share memory with what was cut since used() was `begin`; more is cut where that is too
  /// short.
  template <class T>
  T* share(std::size_t begin, std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (used_ - begin < bytes) take<std::uint8_t>(bytes - (used_ - begin));
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + begin);
  }

 private:
  static constexpr std::size_t kAlign = 64;
  std::uint8_t* base_;
  std::size_t used_ = 0;
};

}  // namespace quern

// The engine's memory outside of the ring: counted, and refused above a limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <new>

namespace quern::checkpoint {

class CountedMemory final : public std::pmr::memory_resource {
 public:
  /// 0: no limit.
  explicit CountedMemory(std::uint64_t limit) : limit_(limit == 0 ? UINT64_MAX : limit) {}
  std::uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    const std::uint64_t now = used_.fetch_add(bytes) + bytes;
    if (now > limit_) {
      used_.fetch_sub(bytes);
      throw std::bad_alloc();
    }
    std::uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
    }
    try {
      return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    } catch (...) {
      used_.fetch_sub(bytes);
      throw;
    }
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
    used_.fetch_sub(bytes);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace quern::checkpoint

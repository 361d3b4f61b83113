// Memory for tests of kernels whose loads no sanitizer watches.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

namespace quern::testing {

/// Memory between two pages that nobody may touch: what vectors load and gather is watched by no sanitizer. It ends
/// where the second of them begins, or begins where the first ends.
template <class T>
class Guarded {
 public:
  Guarded(std::size_t count, bool at_end) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inner = (count * sizeof(T) + page - 1) / page * page;
    bytes_ = inner + 2 * page;
    pages_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages_ == MAP_FAILED) throw std::bad_alloc();
    auto* const first = static_cast<std::uint8_t*>(pages_) + page;
    if (mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    span_ = {reinterpret_cast<T*>(first + (at_end ? inner - count * sizeof(T) : 0)), count};
  }
  ~Guarded() { munmap(pages_, bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  std::span<T> span() const { return span_; }
  T* data() const { return span_.data(); }
  T& operator[](std::size_t i) const { return span_[i]; }

 private:
  std::size_t bytes_ = 0;
  void* pages_ = nullptr;
  std::span<T> span_;
};

}  // namespace quern::testing

// Counts what the program holds through operator new, so that a target can hold a decoder to its memory limit.
#include <malloc.h>

#include <atomic>
#include <new>

#include "tests/fuzz/fuzz_common.h"

namespace {

std::atomic<std::uint64_t> held_bytes{0};
std::atomic<std::uint64_t> peak_bytes{0};

void* count_in(void* memory) {
  if (memory == nullptr) return nullptr;
  const std::uint64_t now = held_bytes.fetch_add(malloc_usable_size(memory)) + malloc_usable_size(memory);
  std::uint64_t peak = peak_bytes.load();
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
  return memory;
}

void count_out(void* memory) {
  if (memory == nullptr) return;
  held_bytes.fetch_sub(malloc_usable_size(memory));
  std::free(memory);
}

void* aligned(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return count_in(or_throw(std::malloc(bytes != 0 ? bytes : 1))); }
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return count_in(std::malloc(bytes != 0 ? bytes : 1));
}
void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept { return operator new(bytes, tag); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return count_in(or_throw(aligned(bytes, alignment)));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return operator new(bytes, alignment); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return count_in(aligned(bytes, alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag) noexcept {
  return operator new(bytes, alignment, tag);
}
void operator delete(void* memory) noexcept { count_out(memory); }
void operator delete[](void* memory) noexcept { count_out(memory); }
void operator delete(void* memory, std::size_t) noexcept { count_out(memory); }
void operator delete[](void* memory, std::size_t) noexcept { count_out(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { count_out(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { count_out(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { count_out(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { count_out(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { count_out(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { count_out(memory); }

namespace quern::fuzz {

AllocationWatch::AllocationWatch() : held_before_(held_bytes.load()) { peak_bytes.store(held_before_); }

std::uint64_t AllocationWatch::peak() const { return peak_bytes.load() - held_before_; }

}  // namespace quern::fuzz

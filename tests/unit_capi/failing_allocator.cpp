// The allocator, and the functions in the place of operator new and malloc (the linker wraps the latter).
#include "tests/unit_capi/failing_allocator.h"

#include <atomic>
#include <cstdlib>
#include <new>

// The operators below take their memory from malloc, which GCC 12 cannot know of the one that takes an alignment.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {

std::atomic<std::size_t> stray_allocations{0};

void note() {
  if (quern::testing::HeapWatch::watching) ++stray_allocations;
}

}  // namespace

extern "C" {
void* __real_malloc(std::size_t bytes);                                // NOLINT: the linker's names
void* __real_calloc(std::size_t count, std::size_t bytes);             // NOLINT
void* __real_realloc(void* memory, std::size_t bytes);                 // NOLINT
void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);  // NOLINT
void* __wrap_malloc(std::size_t bytes) {                               // NOLINT
  note();
  return __real_malloc(bytes);
}
void* __wrap_calloc(std::size_t count, std::size_t bytes) {  // NOLINT
  note();
  return __real_calloc(count, bytes);
}
void* __wrap_realloc(void* memory, std::size_t bytes) {  // NOLINT
  note();
  return __real_realloc(memory, bytes);
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {  // NOLINT
  note();
  return __real_aligned_alloc(alignment, bytes);
}
}

void* operator new(std::size_t bytes) {
  note();
  void* const memory = __real_malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  note();
  return __real_malloc(bytes != 0 ? bytes : 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  note();
  const auto unit = static_cast<std::size_t>(alignment);
  void* const memory = __real_aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace quern::testing {

thread_local bool HeapWatch::watching = false;
std::size_t HeapWatch::strays() { return stray_allocations; }
void HeapWatch::reset() { stray_allocations = 0; }

void FailingAllocator::fail_at(std::size_t n) {
  const std::lock_guard lock(mutex_);
  calls_ = 0;
  fail_at_ = n;
}

void* FailingAllocator::allocate(void* user, std::size_t bytes, std::size_t alignment) {
  const Watched off(false);
  auto& self = *static_cast<FailingAllocator*>(user);
  const std::lock_guard lock(self.mutex_);
  if (++self.calls_ == self.fail_at_) return nullptr;
  const std::size_t unit = alignment < sizeof(void*) ? sizeof(void*) : alignment;
  void* const memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
  if (memory == nullptr) return nullptr;
  self.blocks_[memory] = {bytes, alignment};
  return memory;
}

void FailingAllocator::release(void* user, void* memory, std::size_t bytes, std::size_t alignment) {
  const Watched off(false);
  auto& self = *static_cast<FailingAllocator*>(user);
  const std::lock_guard lock(self.mutex_);
  const auto found = self.blocks_.find(memory);
  if (found == self.blocks_.end() || found->second.bytes != bytes || found->second.alignment != alignment) {
    ++self.mistakes_;
    return;
  }
  self.blocks_.erase(found);
  std::free(memory);
}

}  // namespace quern::testing

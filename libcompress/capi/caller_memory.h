// The caller's allocator as the library's memory resource, and handles that live in it.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>

#include <quern/quern.h>
#include <quern/status.h>

namespace quern::capi {

/// Without functions: the C++ heap.
class CallerMemory final : public std::pmr::memory_resource {
 public:
  explicit CallerMemory(const quern_allocator& allocator) : allocator_(allocator) {}
  const quern_allocator& allocator() const { return allocator_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (allocator_.allocate == nullptr) return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    void* const memory = allocator_.allocate(allocator_.user, bytes, alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    if (allocator_.allocate == nullptr) return std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
    allocator_.release(allocator_.user, memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other || (allocator_.allocate == nullptr && &other == std::pmr::new_delete_resource());
  }

  quern_allocator allocator_;
};

/// Both functions or none.
inline Status check_allocator(const quern_allocator& allocator) {
  if ((allocator.allocate == nullptr) != (allocator.release == nullptr))
    return Status(StatusCode::invalid_argument, "the allocator has one function; give both, or neither for malloc");
  return {};
}

/// A handle in the caller's memory. Its member `memory`, the first, is what it lives in. Throws std::bad_alloc.
template <class Handle>
Handle* make_handle(const quern_allocator& allocator) {
  CallerMemory memory(allocator);
  return new (memory.allocate(sizeof(Handle), alignof(Handle))) Handle(allocator);
}

template <class Handle>
void destroy_handle(Handle* handle) noexcept {
  if (handle == nullptr) return;
  CallerMemory memory(handle->memory.allocator());
  handle->~Handle();
  memory.deallocate(handle, sizeof(Handle), alignof(Handle));
}

}  // namespace quern::capi

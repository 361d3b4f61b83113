// Where the library's memory comes from. A MemoryScope names a resource for the calls made on this thread while it
// lives; containers, buffers and objects made meanwhile take their memory there, keep it for life, and give it back to
// it. Tasks inherit the scope of the call that runs them. Without a scope: the C++ heap.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <string>
#include <type_traits>
#include <vector>

namespace quern {

/// The resource of the innermost scope on this thread, never null.
std::pmr::memory_resource* current_memory() noexcept;

/// Names a resource until it dies. The resource outlives whatever is made from it; it is used from several threads at
/// once when the calls are allowed several.
class MemoryScope {
 public:
  explicit MemoryScope(std::pmr::memory_resource* memory) noexcept;
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  std::pmr::memory_resource* outer_;
};

/// Takes memory from the resource that was current when it was made. Copies of a container use what is current then;
/// moved containers take their resource along.
template <class T>
class Allocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  Allocator() noexcept : memory_(current_memory()) {}
  template <class U>
  Allocator(const Allocator<U>& other) noexcept : memory_(other.memory()) {}  // NOLINT: allocators convert

  T* allocate(std::size_t n) {
    if (n > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(memory_->allocate(n * sizeof(T), alignof(T)));
  }
  void deallocate(T* p, std::size_t n) noexcept { memory_->deallocate(p, n * sizeof(T), alignof(T)); }
  Allocator select_on_container_copy_construction() const noexcept { return {}; }

  std::pmr::memory_resource* memory() const noexcept { return memory_; }
  friend bool operator==(const Allocator& a, const Allocator& b) noexcept { return a.memory_ == b.memory_; }

 private:
  std::pmr::memory_resource* memory_;
};

template <class T>
using Vector = std::vector<T, Allocator<T>>;
using String = std::basic_string<char, std::char_traits<char>, Allocator<char>>;

/// Base of classes whose objects are made with `new`: they come from the current resource and remember it.
class Allocated {
 public:
  static void* operator new(std::size_t bytes);
  static void operator delete(void* object) noexcept;
  static void* operator new(std::size_t bytes, std::align_val_t) = delete;

 protected:
  ~Allocated() = default;
};

}  // namespace quern

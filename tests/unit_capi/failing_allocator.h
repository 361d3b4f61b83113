// An allocator that fails at its n-th call, knows what is still held, and sees whether memory is taken past it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include <quern/quern.h>

namespace quern::testing {

/// Allocations of this thread from the C++ heap and malloc while it is in a watched call and not in an allocator.
/// Counted by the replaced functions of allocator_test.cpp.
struct HeapWatch {
  static thread_local bool watching;
  static std::size_t strays();
  static void reset();
};

class Watched {
 public:
  Watched() : outer_(std::exchange(HeapWatch::watching, true)) {}
  explicit Watched(bool watching) : outer_(std::exchange(HeapWatch::watching, watching)) {}
  ~Watched() { HeapWatch::watching = outer_; }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  bool outer_;
};

class FailingAllocator {
 public:
  quern_allocator get() { return {&allocate, &release, this}; }
  /// Call `n` fails, counted from 1 and from now; 0: none.
  void fail_at(std::size_t n);
  std::size_t calls() const { return calls_; }
  std::size_t live() const { return blocks_.size(); }
  /// Blocks given back that were never given, or with another size or alignment; blocks that were not aligned.
  std::size_t mistakes() const { return mistakes_; }

 private:
  struct Block {
    std::size_t bytes;
    std::size_t alignment;
  };
  static void* allocate(void* user, std::size_t bytes, std::size_t alignment);
  static void release(void* user, void* memory, std::size_t bytes, std::size_t alignment);

  std::mutex mutex_;
  std::map<void*, Block> blocks_;
  std::size_t calls_ = 0;
  std::size_t fail_at_ = 0;
  std::size_t mistakes_ = 0;
};

}  // namespace quern::testing

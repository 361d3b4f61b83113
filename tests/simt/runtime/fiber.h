// Stacks that one host thread switches between, told to AddressSanitizer.
#pragma once

#include <cstddef>

namespace simt {

class Fiber {
 public:
  using Entry = void (*)();

  /// The host thread's own stack.
  Fiber() = default;
  /// A stack of its own with a guard page below. The entry never returns.
  explicit Fiber(Entry entry);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Forgets what runs on the stack: the next switch to it starts at the entry.
  void restart();
  /// Goes on with `to`; returns when something switches back.
  void switch_to(Fiber& to);

 private:
  friend struct FiberEntry;

  void arrived_from(Fiber& from);

  Entry entry_ = nullptr;
  void* context_ = nullptr;
  std::byte* mapping_ = nullptr;
  const void* bottom_ = nullptr;  ///< lowest byte of the stack
  std::size_t bytes_ = 0;
  void* fake_stack_ = nullptr;  ///< AddressSanitizer's
};

}  // namespace simt

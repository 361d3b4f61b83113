// Two slots that take turns, so that what was started in one runs on a device while a host finishes and fills the
// other.
//
//   slot 0   start 0 ............ finish 0, start 2 ............ finish 2
//   slot 1            start 1 ............ finish 1, start 3 ............ finish 3
#pragma once

#include <array>
#include <cstddef>

#include <quern/status.h>

namespace quern::cuda {

template <class Slot>
class DoubleBuffer {
 public:
  static constexpr std::size_t kSlots = 2;

  auto begin() { return slots_.begin(); }
  auto end() { return slots_.end(); }

  /// While more(): finish(slot), then start(slot), of the slot that was started longest ago. In the end finish(slot) of
  /// both, in the order of their starts. Stops at the first failure, with what was started in the other slot under way.
  /// finish() is also called for slots in which nothing was started.
  template <class More, class Finish, class Start>
  Status run(const More& more, const Finish& finish, const Start& start) {
    std::size_t oldest = 0;
    const auto take_oldest = [&]() -> Slot& {
      Slot& slot = slots_[oldest];
      oldest = (oldest + 1) % kSlots;
      return slot;
    };
    while (more()) {
      Slot& slot = take_oldest();
      QUERN_RETURN_IF_ERROR(finish(slot));
      QUERN_RETURN_IF_ERROR(start(slot));
    }
    for (std::size_t i = 0; i < kSlots; ++i) QUERN_RETURN_IF_ERROR(finish(take_oldest()));
    return {};
  }

 private:
  std::array<Slot, kSlots> slots_;
};

}  // namespace quern::cuda

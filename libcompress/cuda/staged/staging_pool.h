// Lanes of staging: a queue with memory on both sides of the bus. They are dear to make, so a device keeps them from
// one call to the next.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include <quern/memory.h>

#include "libcompress/cuda/cuda_memory.h"

namespace quern::cuda {

struct StagingLane {
  CudaQueue queue;
  DeviceMemory device;
  PinnedMemory in;      ///< what goes to the device
  PinnedMemory tables;  ///< goes there and comes back
  PinnedMemory out;     ///< what comes back
};

/// Least bytes of a lane's memory of each kind.
struct StagingBytes {
  std::uint64_t device = 0;
  std::uint64_t in = 0;
  std::uint64_t tables = 0;
  std::uint64_t out = 0;
};

/// Lanes of one device, which is the current one whenever lanes are opened or closed.
class LanePool {
 public:
  /// One that is not in use, or a new one, with at least so many bytes. May throw std::bad_alloc.
  Result<StagingLane> take(const StagingBytes& bytes) {
    StagingLane lane;
    {
      const std::lock_guard lock(mutex_);
      free_.reserve(made_ + 1);  // so that giving back cannot fail
      ++made_;
      if (!free_.empty()) {
        lane = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (lane.queue.get() == nullptr) QUERN_RETURN_IF_ERROR(lane.queue.open());
    QUERN_RETURN_IF_ERROR(lane.device.reserve(bytes.device));
    QUERN_RETURN_IF_ERROR(lane.in.reserve(bytes.in));
    QUERN_RETURN_IF_ERROR(lane.tables.reserve(bytes.tables));
    QUERN_RETURN_IF_ERROR(lane.out.reserve(bytes.out));
    return lane;
  }
  /// Waits for what is under way in it.
  void give_back(StagingLane lane) noexcept {
    if (lane.queue.get() == nullptr) return;
    static_cast<void>(lane.queue.wait());
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(lane));
  }
  /// The same for all of `lanes`, which are what is derived from StagingLane.
  template <class Lanes>
  Status take_all(Lanes& lanes, const StagingBytes& bytes) {
    for (StagingLane& lane : lanes) {
      QUERN_ASSIGN_OR_RETURN(lane, take(bytes));
    }
    return {};
  }
  template <class Lanes>
  void give_back_all(Lanes& lanes) noexcept {
    for (StagingLane& lane : lanes) give_back(std::move(lane));
  }
  /// Closes those that are not in use.
  void clear() noexcept { free_.clear(); }

 private:
  std::mutex mutex_;
  Vector<StagingLane> free_;
  std::size_t made_ = 0;
};

}  // namespace quern::cuda

// The memory that tensors are captured into: segments of 2 MiB that are freed in any order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/storage.h"

namespace quern::checkpoint {

/// Where a tensor lies in the ring: contiguous as far as readers are concerned.
struct RingPlace {
  std::uint8_t* data = nullptr;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> segments;  ///< all of them that hold a part of it
  void* view = nullptr;                 ///< where scattered segments are mapped one behind the other; else null
  std::span<const std::uint8_t> span() const { return {data, static_cast<std::size_t>(bytes)}; }
};

/// One thread at a time, but for the bytes of places. Its memory is taken when it is opened and never grows. Segments
/// that do not lie side by side are mapped side by side a second time, so no tensor waits for a contiguous run.
class SegmentRing {
 public:
  static constexpr std::uint64_t kSegmentBytes = std::uint64_t{1} << 21;

  /// Of `bytes`, rounded up to whole segments; fails when that much memory is not to be had.
  static Result<std::unique_ptr<SegmentRing>> open(std::uint64_t bytes, Report& report);
  ~SegmentRing();
  SegmentRing(const SegmentRing&) = delete;
  SegmentRing& operator=(const SegmentRing&) = delete;

  /// Room for that many bytes, at least 1; nothing: not now. Small tensors share segments.
  std::optional<RingPlace> take(std::uint64_t bytes);
  void give_back(RingPlace& place);

  std::uint64_t total_bytes() const { return users_.size() * kSegmentBytes; }
  /// Of segments that nobody uses.
  std::uint64_t free_bytes() const { return free_ * kSegmentBytes; }
  std::uint64_t peak_bytes() const { return peak_ * kSegmentBytes; }

 private:
  SegmentRing() = default;
  bool find_run(std::uint64_t count, std::size_t& first) const;
  bool map_side_by_side(RingPlace& place) const;
  void use(RingPlace& place);

  int file_ = -1;
  std::uint8_t* memory_ = nullptr;
  std::vector<std::uint32_t> users_;  ///< places in each segment
  std::uint64_t free_ = 0;
  std::uint64_t peak_ = 0;
  std::size_t next_ = 0;             ///< where a search for a run begins
  std::optional<std::size_t> tail_;  ///< the segment whose end has room
  std::uint64_t tail_used_ = 0;
};

}  // namespace quern::checkpoint

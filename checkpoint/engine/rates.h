// How fast copying and coding go, measured; and which of them lets the trainer write again sooner.
#pragma once

#include <cstdint>

namespace quern::checkpoint {

/// A moving average of bytes a second: each measurement counts by its bytes, the last 64 MiB or so count most.
class MovingRate {
 public:
  void add(std::uint64_t bytes, double seconds) {
    if (bytes == 0 || !(seconds > 0)) return;
    constexpr double kMemory = 1 << 26;
    const double keep = kMemory / (kMemory + static_cast<double>(bytes));
    bytes_ = bytes_ * keep + static_cast<double>(bytes);
    seconds_ = seconds_ * keep + seconds;
  }
  bool known() const { return seconds_ > 0; }
  double per_second() const { return known() ? bytes_ / seconds_ : 0; }

 private:
  double bytes_ = 0;
  double seconds_ = 0;
};

/// A tensor for which there are two ways.
struct CaptureChoice {
  double bytes = 0;
  double free_bytes = 0;   ///< of the ring
  double ahead_bytes = 0;  ///< that are coded before it
  double copy_rate = 0;    ///< bytes a second
  double code_rate = 0;    ///< of what is coded before it
  double own_rate = 0;     ///< of coding this tensor

  /// Seconds until a copy of it is in the ring: what the ring lacks must be coded first.
  double copied() const {
    const double lacking = bytes > free_bytes ? bytes - free_bytes : 0;
    return lacking / code_rate + bytes / copy_rate;
  }
  /// Seconds until it is coded where it lies.
  double coded() const { return ahead_bytes / code_rate + bytes / own_rate; }
  bool code_first() const { return copy_rate > 0 && code_rate > 0 && own_rate > 0 && coded() < copied(); }
};

}  // namespace quern::checkpoint

// How fast something goes, measured again and again.
#pragma once

#include <cstdint>

namespace quern::storage {

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

}  // namespace quern::storage

// When something that failed is tried again: ever later while it fails, so that other work goes on meanwhile.
#pragma once

#include <algorithm>
#include <chrono>

namespace quern::checkpoint {

class Retry {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Retry(Clock::duration longest) : longest_(longest) {}

  bool is_due() const { return Clock::now() >= next_; }
  /// It has worked, or failed. Where `begun` is given, the next try is at least three times as far away as this one took.
  void heard(bool worked, Clock::time_point begun = Clock::now()) {
    const auto now = Clock::now();
    if (!worked) next_ = now + std::max<Clock::duration>(pause_, 3 * (now - std::min(begun, now)));
    pause_ = worked ? kFirst : std::min<Clock::duration>(2 * pause_, longest_);
  }

 private:
  static constexpr Clock::duration kFirst = std::chrono::milliseconds(100);
  Clock::duration longest_;
  Clock::duration pause_ = kFirst;
  Clock::time_point next_{};
};

}  // namespace quern::checkpoint

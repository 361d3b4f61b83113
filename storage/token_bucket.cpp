#include "storage/token_bucket.h"

#include <algorithm>
#include <thread>

namespace quern::storage {

void TokenBucket::set_rate(double rate) {
  const std::lock_guard lock(mutex_);
  rate_ = rate;
}

double TokenBucket::rate() const {
  const std::lock_guard lock(mutex_);
  return rate_;
}

TokenBucket::Clock::time_point TokenBucket::take(std::uint64_t bytes, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!(rate_ > 0)) return now;
  next_ = std::max(next_, now - holds_);
  next_ +=
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(static_cast<double>(bytes) / rate_));
  return next_;
}

bool wait_turn(TokenBucket& bucket, std::uint64_t bytes, const std::function<bool()>& stopped) {
  using Clock = TokenBucket::Clock;
  const Clock::time_point until = bucket.take(bytes, Clock::now());
  while (!stopped()) {
    const auto left = until - Clock::now();
    if (left <= Clock::duration::zero()) return true;
    std::this_thread::sleep_for(std::min<Clock::duration>(left, std::chrono::milliseconds(50)));
  }
  return false;
}

}  // namespace quern::storage

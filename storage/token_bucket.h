// Limits how many bytes a second somebody writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

namespace quern::storage {

/// A token bucket. Any thread may call anything.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  /// `rate`: bytes a second; 0: no limit. It holds what passes in `holds`.
  explicit TokenBucket(double rate = 0, Clock::duration holds = std::chrono::milliseconds(100))
      : rate_(rate), holds_(holds) {}
  void set_rate(double rate);
  double rate() const;
  /// Takes `bytes` out; they may be written from the returned time on. Asks no clock.
  Clock::time_point take(std::uint64_t bytes, Clock::time_point now);

 private:
  mutable std::mutex mutex_;
  double rate_;
  const Clock::duration holds_;
  Clock::time_point next_{};  ///< when what was taken so far is written at that rate
};

/// Waits until so many bytes may be written; false: `stopped` said so meanwhile. It is asked every 50 ms.
bool wait_turn(TokenBucket& bucket, std::uint64_t bytes, const std::function<bool()>& stopped);

}  // namespace quern::storage

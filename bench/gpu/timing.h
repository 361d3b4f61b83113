// How long queued work takes: on the device between two events, and for the host from the first call to the end.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/gpu/cuda.h"

namespace quern::bench {

struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

/// Milliseconds.
struct Timing {
  std::uint64_t repeats = 0;
  Spread device;
  Spread host;
};

/// What the device's L2 cache holds before a repetition: what the one before left there, or nothing of use.
enum class Cache { warm, cold };
/// How the work reaches the device: queued call by call, or as one graph that was captured once.
enum class Queueing { calls, graph };

/// Queues the work to be timed; returns the first error.
using Work = std::function<cudaError_t(cudaStream_t)>;

class Stopwatch {
 public:
  /// At least `least_repeats` repetitions after two that do not count, and more until `seconds` have passed; three
  /// where so many would take more than ten times as long.
  Stopwatch(std::uint64_t least_repeats, double seconds, std::uint64_t l2_bytes);

  Timing time(const Work& work, Cache cache, Queueing queueing);

 private:
  std::uint64_t least_repeats_;
  double seconds_;
  Stream stream_;
  Event begin_;
  Event end_;
  DeviceArray<std::uint8_t> eviction_;  ///< overwritten to empty the cache
};

}  // namespace quern::bench

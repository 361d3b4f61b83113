// Progress of a call that goes through its array several times. Inside a pass: chunks as they are done.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include <quern/execution.h>

namespace quern {

/// Maps passes to one progress that never goes back. A pass gets a share of what is left, in proportion to the time it
/// is likely to take. That all elements are done is left to report_done() of Trials, at the very end.
class PassProgress {
 public:
  /// The callback outlives the object.
  PassProgress(const ProgressCallback& report, std::uint64_t elems) : report_(report), elems_(elems) {}

  /// Ends the pass before and begins one that takes `share` (0 to 1) of what is left.
  void begin_pass(double share);
  bool begun() const { return end_ > 0; }
  /// Asks the caller whether to go on; false cancels.
  bool update(std::uint64_t done, std::uint64_t total);
  /// For code that knows of one pass only; empty where nobody listens. Must not outlive this object.
  ProgressCallback callback();

 private:
  const ProgressCallback& report_;
  std::uint64_t elems_;
  double begin_ = 0;  // of the pass, as a part of the whole
  double end_ = 0;
  std::uint64_t reported_ = 0;
};

/// Counts elements of chunks that several threads finish, and tells the calling thread's progress before each chunk
/// that this thread begins.
class ChunkProgress {
 public:
  /// `begun` elements were done before. The callback outlives the object.
  ChunkProgress(const ProgressCallback& report, std::uint64_t begun, std::uint64_t total)
      : report_(report), reported_(begun), total_(total), caller_(std::this_thread::get_id()), done_(begun) {}

  /// Asks, on the calling thread, whether to go on; true on other threads.
  bool begin_chunk();
  void end_chunk(std::uint64_t elems) { done_.fetch_add(elems, std::memory_order_relaxed); }

 private:
  const ProgressCallback& report_;
  std::uint64_t reported_;
  std::uint64_t total_;
  std::thread::id caller_;
  std::atomic<std::uint64_t> done_;
};

}  // namespace quern

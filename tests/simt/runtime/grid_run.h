// One launch of a kernel: a few CTAs at a time, every thread a fiber, who goes on next drawn at random.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simt/vector_types.h"
#include "tests/simt/runtime/bit_flips.h"
#include "tests/simt/runtime/cta.h"
#include "tests/simt/runtime/race_watch.h"
#include "tests/simt/runtime/random.h"

namespace simt {

struct KernelLaunch {
  const void* kernel = nullptr;
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes = 0;
  std::function<void()> body;  ///< what each thread runs
};

/// How a launch is run; not part of what a kernel may rely on.
struct RunLimits {
  unsigned resident_blocks = 0;  ///< 0: drawn for each launch
  bool watch_races = false;
  std::uint64_t idle_steps = 0;  ///< switches without a thread that ends or a barrier that opens: taken for a livelock
};

/// As messages write a place.
std::string text(const uint3& at);

class GridRun {
 public:
  GridRun(const KernelLaunch& launch, const RunLimits& limits, std::uint64_t seed);
  ~GridRun();
  GridRun(const GridRun&) = delete;
  GridRun& operator=(const GridRun&) = delete;

  /// Runs every thread to its end. Returns what went wrong, empty when nothing did.
  std::string run();

  /// The run whose threads are running; null outside kernels.
  static GridRun* current();

  // For the functions that kernels call; the caller is the running thread.
  Warp& warp() { return *warp_; }
  unsigned lane() const { return lane_; }
  Random& random() { return random_; }
  void make_ready(Warp& warp, std::uint32_t lanes);
  /// Lets others run. The running thread must be ready, or become so through another.
  void go_on();
  int barrier(BarrierKind kind, bool flag);
  /// Ends the launch. No other object of the running thread may own memory: nothing is destroyed.
  [[noreturn]] void fail(std::string what);
  /// What flips may hit at a moment of a CTA; `exchanged` is left to the caller.
  FlipReach reach_of(const Cta& cta) const;
  /// For the watch on races, from the running thread.
  void note_memory_event(const void* at, std::size_t bytes, MemoryEvent event);
  void join_lanes(std::uint32_t lanes);
  static void watch_plain_access(const void* at, std::size_t bytes, bool write);
  static void watch_volatile_access(const void* at, std::size_t bytes, bool write);
  /// Kernel, block and thread, as messages name them.
  std::string describe_running() const;

 private:
  static void run_threads();
  void exit_thread();
  void start_block(Cta& cta);
  void open_barrier(Cta& cta);
  void choose();
  void take_away(Warp& warp);
  unsigned residency(unsigned wanted);
  [[noreturn]] void abandon(std::string&& why);
  std::string stuck() const;
  std::string describe(const Warp& warp, unsigned lane) const;
  uint3 thread_index(unsigned thread) const;
  uint3 block_index(unsigned block) const;
  void join_block(const Cta& cta);
  RaceWatch::Row row(const Warp& warp, unsigned lane) const;
  void watch_access(const void* at, std::size_t bytes, bool write, bool atomic);
  bool is_shared_by_threads(const void* at) const;
  std::string race_message(const void* at, std::size_t bytes, bool write, const RaceWatch::Conflict& conflict) const;

  KernelLaunch launch_;
  RunLimits limits_;
  Random random_;
  unsigned threads_;     ///< of a block
  unsigned leave_mask_;  ///< a warp is left when these bits of a random number are 0
  std::vector<std::uint32_t> order_;
  std::size_t started_ = 0;
  std::size_t finished_ = 0;
  std::vector<std::unique_ptr<Cta>> ctas_;
  std::vector<std::shared_ptr<unsigned char>> shared_;
  std::unique_ptr<RaceWatch> watch_;
  std::vector<Warp*> active_;  ///< warps with a ready lane
  Warp* warp_ = nullptr;
  unsigned lane_ = 0;
  std::uint64_t idle_steps_ = 0;
  Fiber host_;
  std::string failure_;
};

}  // namespace simt

// One launch of a kernel: a few CTAs at a time, every thread a fiber, who goes on next drawn at random.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simt/vector_types.h"
#include "tests/simt/runtime/cta.h"
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
  std::uint64_t idle_steps = 0;  ///< switches without a thread that ends or a barrier that opens: taken for a livelock
};

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
  /// Ends the launch; throws through the kernel.
  [[noreturn]] void fail(const std::string& what);
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
  std::string stuck(const std::string& why) const;
  std::string describe(const Warp& warp, unsigned lane) const;

  KernelLaunch launch_;
  RunLimits limits_;
  Random random_;
  unsigned leave_mask_;  ///< a warp is left when these bits of a random number are 0
  std::vector<std::uint32_t> order_;
  std::size_t started_ = 0;
  std::size_t finished_ = 0;
  std::vector<std::unique_ptr<Cta>> ctas_;
  std::vector<std::shared_ptr<unsigned char>> shared_;
  std::vector<Warp*> active_;  ///< warps with a ready lane
  Warp* warp_ = nullptr;
  unsigned lane_ = 0;
  std::uint64_t idle_steps_ = 0;
  Fiber host_;
  std::string failure_;
};

}  // namespace simt

// A moving window of chunks: the calling thread alone talks to HDF5 and helps out in between, the others compute.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace quern::hdf5 {

/// What happens to one item. `slot` is one of 2 * threads places for what is handed on from one step to the next;
/// `worker`, below `threads`, is the thread that works.
struct WindowSteps {
  std::function<void(std::uint64_t item, std::size_t slot)> begin;  ///< calling thread, in order of items
  std::function<void(std::uint64_t item, std::size_t slot, std::size_t worker)> work;  ///< any thread, in any order
  std::function<void(std::uint64_t item, std::size_t slot)> end;  ///< calling thread, in order of items
};

/// Takes `items` items through the steps. The first step that throws stops the others; its exception comes out of run()
/// after every thread has ended.
class WorkWindow {
 public:
  WorkWindow(std::uint64_t items, std::size_t threads, const WindowSteps& steps)
      : items_(items), threads_(threads), steps_(steps), done_(2 * threads, false) {}
  static std::size_t slots(std::size_t threads) { return 2 * threads; }

  void run() {
    std::vector<std::thread> pool;
    try {
      pool.reserve(threads_ - 1);
      for (std::size_t worker = 1; worker < threads_; ++worker) pool.emplace_back([this, worker] { help(worker); });
    } catch (const std::system_error&) {
      // The system gives no more threads: those that there are do the work.
    }
    lead();
    for (std::thread& thread : pool) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  bool finished() const { return failure_ != nullptr || ended_ == items_; }

  /// Runs a step without the lock.
  template <class Step>
  void outside(Lock& lock, const Step& step) {
    lock.unlock();
    std::exception_ptr failure;
    try {
      step();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
  }

  void work_on_next(Lock& lock, std::size_t worker) {
    const std::uint64_t item = claimed_++;
    const std::size_t slot = item % done_.size();
    outside(lock, [&] { steps_.work(item, slot, worker); });
    done_[slot] = true;
    changed_.notify_all();
  }

  void lead() {
    Lock lock(mutex_);
    while (!finished()) {
      const std::size_t oldest = ended_ % done_.size();
      if (ended_ < claimed_ && done_[oldest]) {
        outside(lock, [&] { steps_.end(ended_, oldest); });
        done_[oldest] = false;
        ++ended_;
      } else if (begun_ < items_ && begun_ - ended_ < done_.size()) {
        outside(lock, [&] { steps_.begin(begun_, begun_ % done_.size()); });
        ++begun_;
        changed_.notify_all();
      } else if (claimed_ < begun_) {
        work_on_next(lock, 0);
      } else {
        changed_.wait(lock);
      }
    }
    changed_.notify_all();
  }

  void help(std::size_t worker) {
    Lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return finished() || claimed_ < begun_; });
      if (finished()) return;
      work_on_next(lock, worker);
    }
  }

  const std::uint64_t items_;
  const std::size_t threads_;
  const WindowSteps& steps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t begun_ = 0;    ///< items below it have been begun,
  std::uint64_t claimed_ = 0;  ///< taken by a worker,
  std::uint64_t ended_ = 0;    ///< and ended
  std::vector<bool> done_;     ///< by slot: worked on, not yet ended
  std::exception_ptr failure_;
};

}  // namespace quern::hdf5

// A thread that does one thing after another, or none: then what is posted is done at once by whoever posts it.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include <quern/memory.h>

namespace quern::offload {

class Worker {
 public:
  /// May throw std::system_error where the system has no thread.
  explicit Worker(bool own_thread);
  /// Waits for everything that was posted.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// `job` throws nothing. Runs in the memory scope of the thread that made the worker.
  void post(std::function<void()> job);

 private:
  static void* start(void* self);
  void run();

  std::pmr::memory_resource* const memory_ = current_memory();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool ends_ = false;
  bool own_thread_;
  pthread_t thread_{};
};

}  // namespace quern::offload

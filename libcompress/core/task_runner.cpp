// Thread pool behind RunnerHandle: workers take indices from a shared counter.
#include <quern/memory.h>

#include "libcompress/core/task_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "libcompress/core/processor.h"

namespace quern {
namespace {

class ThreadPool final : public TaskRunner {
 public:
  explicit ThreadPool(std::size_t threads) {
    const int maker = current_processor();
    for (std::size_t i = 1; i < threads; ++i) {
      try {
        workers_.emplace_back([this, maker] { work(maker); });
      } catch (const std::system_error&) {
        break;  // fewer threads than wished: slower, never wrong
      }
    }
  }

  ~ThreadPool() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(std::size_t tasks, const TaskBody& body) override {
    {
      const std::lock_guard lock(mutex_);
      body_ = &body;
      tasks_ = tasks;
      next_.store(0, std::memory_order_relaxed);
      round_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    drain(body, tasks);
    // Workers that have not woken up by now need not: the round is closed for them.
    std::unique_lock lock(mutex_);
    body_ = nullptr;
    lock.unlock();
    spin_until([this] { return busy_.load(std::memory_order_acquire) == 0; });
    lock.lock();
    idle_.wait(lock, [this] { return busy_.load(std::memory_order_acquire) == 0; });
  }

  std::size_t width() const override { return workers_.size() + 1; }

 private:
  void drain(const TaskBody& body, std::size_t tasks) {
    for (std::size_t i = next_.fetch_add(1); i < tasks; i = next_.fetch_add(1)) body(i);
  }

  // Rounds follow one another within microseconds, faster than a sleeping thread wakes up.
  template <class Condition>
  static void spin_until(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + kSpin;
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  // Only a round that is still open when a worker comes to it is worth its moving elsewhere.
  void work(int maker) {
    std::uint64_t seen = 0;
    bool began = false;
    while (true) {
      spin_until([&] { return round_.load(std::memory_order_acquire) != seen; });
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || round_.load(std::memory_order_relaxed) != seen; });
      if (stop_) return;
      seen = round_.load(std::memory_order_relaxed);
      const auto* body = body_;
      if (body == nullptr) continue;
      const std::size_t tasks = tasks_;
      busy_.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      if (!std::exchange(began, true)) leave_processor(maker);
      drain(*body, tasks);
      lock.lock();
      if (busy_.fetch_sub(1, std::memory_order_release) == 1) idle_.notify_one();
    }
  }

  static constexpr std::chrono::microseconds kSpin{50};

  Vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  const TaskBody* body_ = nullptr;
  std::size_t tasks_ = 0;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> busy_{0};  // changed under the mutex
  std::atomic<std::uint64_t> round_{0};
  bool stop_ = false;
};

}  // namespace

RunnerHandle::RunnerHandle(const Execution& execution) {
  if (execution.runner != nullptr) {
    runner_ = execution.runner;
    return;
  }
  std::size_t threads = execution.threads;
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  if (threads == 1) {
    owned_ = std::make_unique<SerialRunner>();
  } else {
    owned_ = std::make_unique<ThreadPool>(std::min<std::size_t>(threads, 1024));
  }
  runner_ = owned_.get();
}

RunnerHandle::~RunnerHandle() = default;

}  // namespace quern

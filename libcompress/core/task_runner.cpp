// Thread pool behind RunnerHandle: workers take indices from a shared counter.
#include "libcompress/core/task_runner.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace quern {
namespace {

class SerialRunner final : public TaskRunner {
 public:
  void run(std::size_t tasks, const std::function<void(std::size_t)>& body) override {
    for (std::size_t i = 0; i < tasks; ++i) body(i);
  }
  std::size_t width() const override { return 1; }
};

class ThreadPool final : public TaskRunner {
 public:
  explicit ThreadPool(std::size_t threads) {
    for (std::size_t i = 1; i < threads; ++i) {
      try {
        workers_.emplace_back([this] { work(); });
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

  void run(std::size_t tasks, const std::function<void(std::size_t)>& body) override {
    {
      const std::lock_guard lock(mutex_);
      body_ = &body;
      tasks_ = tasks;
      next_.store(0);
      busy_ = workers_.size();
      ++round_;
    }
    wake_.notify_all();
    drain(body, tasks);
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return busy_ == 0; });
    body_ = nullptr;
  }

  std::size_t width() const override { return workers_.size() + 1; }

 private:
  void drain(const std::function<void(std::size_t)>& body, std::size_t tasks) {
    for (std::size_t i = next_.fetch_add(1); i < tasks; i = next_.fetch_add(1)) body(i);
  }

  void work() {
    std::uint64_t seen = 0;
    while (true) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
      const auto* body = body_;
      const std::size_t tasks = tasks_;
      lock.unlock();
      drain(*body, tasks);
      lock.lock();
      if (--busy_ == 0) idle_.notify_one();
    }
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  const std::function<void(std::size_t)>* body_ = nullptr;
  std::size_t tasks_ = 0;
  std::atomic<std::size_t> next_{0};
  std::size_t busy_ = 0;
  std::uint64_t round_ = 0;
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

#include "offload/worker.h"

namespace quern::offload {

Worker::Worker(bool own_thread) {
  if (own_thread) thread_ = std::thread([this] { run(); });
}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Worker::post(std::function<void()> job) {
  if (!thread_.joinable()) return job();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void Worker::run() {
  const MemoryScope scope(memory_);
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace quern::offload

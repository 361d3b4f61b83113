#include "offload/worker.h"

#include <system_error>

namespace quern::offload {

namespace {

/// The default, 8 MiB of address space or whatever the shell set, is too much where address space is limited.
constexpr std::size_t kStackBytes = std::size_t{1} << 20;

}  // namespace

Worker::Worker(bool own_thread) : own_thread_(own_thread) {
  if (!own_thread) return;
  pthread_attr_t attributes;
  int error = ::pthread_attr_init(&attributes);
  if (error == 0) {
    error = ::pthread_attr_setstacksize(&attributes, kStackBytes);
    if (error == 0) error = ::pthread_create(&thread_, &attributes, start, this);
    (void)::pthread_attr_destroy(&attributes);
  }
  if (error != 0) throw std::system_error(error, std::generic_category());
}

void* Worker::start(void* self) {
  static_cast<Worker*>(self)->run();
  return nullptr;
}

Worker::~Worker() {
  if (!own_thread_) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  (void)::pthread_join(thread_, nullptr);
}

void Worker::post(std::function<void()> job) {
  if (!own_thread_) return job();
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

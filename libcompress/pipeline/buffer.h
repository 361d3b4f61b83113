// Memory of the pipeline: 64-byte aligned, never initialised, failure is a Status. BufferPool lends scratch to tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <quern/status.h>

namespace quern {

/// Grows on demand and keeps its memory; contents are lost when it grows.
class AlignedBuffer {
 public:
  Status resize(std::uint64_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();
      capacity_ = 0;
      const std::size_t rounded = (static_cast<std::size_t>(bytes) + kAlign - 1) / kAlign * kAlign;
      if (bytes > (UINT64_C(1) << 62)) return too_large(bytes);
      memory_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kAlign, rounded)));
      if (memory_ == nullptr) return too_large(bytes);
      capacity_ = rounded;
    }
    size_ = static_cast<std::size_t>(bytes);
    return {};
  }
  std::uint8_t* data() { return memory_.get(); }
  const std::uint8_t* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  std::span<std::uint8_t> span() { return {memory_.get(), size_}; }

 private:
  static constexpr std::size_t kAlign = 64;
  static Status too_large(std::uint64_t bytes) {
    return Status(StatusCode::out_of_memory, "out of memory: {0} bytes were wanted", static_cast<std::int64_t>(bytes));
  }
  struct Free {
    void operator()(std::uint8_t* p) const { std::free(p); }
  };
  std::unique_ptr<std::uint8_t, Free> memory_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// As many buffers as tasks run at once; made on first use, reused ever after.
class BufferPool {
 public:
  explicit BufferPool(std::size_t bytes) : bytes_(bytes) {}

  /// A buffer on loan; goes back to the pool when it dies.
  class Lease {
   public:
    Lease(BufferPool& pool, std::unique_ptr<AlignedBuffer> buffer) : pool_(&pool), buffer_(std::move(buffer)) {}
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (buffer_ != nullptr) pool_->give_back(std::move(buffer_));
    }
    std::span<std::uint8_t> span() { return buffer_->span(); }

   private:
    BufferPool* pool_;
    std::unique_ptr<AlignedBuffer> buffer_;
  };

  /// May throw std::bad_alloc.
  Result<Lease> lend() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto buffer = std::move(free_.back());
        free_.pop_back();
        return Lease(*this, std::move(buffer));
      }
      free_.reserve(++made_);  // so that giving back cannot fail
    }
    auto buffer = std::make_unique<AlignedBuffer>();
    QUERN_RETURN_IF_ERROR(buffer->resize(bytes_));
    return Lease(*this, std::move(buffer));
  }

 private:
  void give_back(std::unique_ptr<AlignedBuffer> buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<AlignedBuffer>> free_;
  std::size_t made_ = 0;
  std::size_t bytes_;
};

}  // namespace quern

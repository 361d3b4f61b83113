// Bytes that are 64-byte aligned and never initialised; failure is a Status. BufferPool lends scratch to tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>
#include <utility>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/core/huge_pages.h"

namespace quern {

/// Grows on demand and keeps its memory; contents are lost when it grows. Takes memory where it was made.
class AlignedBuffer {
 public:
  AlignedBuffer() : AlignedBuffer(false) {}
  /// `dense`: most of it will be written to, so that huge pages are worth asking for.
  explicit AlignedBuffer(bool dense) : memory_(current_memory()), dense_(dense) {}
  ~AlignedBuffer() { release(); }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : memory_(other.memory_),
        dense_(other.dense_),
        mapped_(std::exchange(other.mapped_, false)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(dense_, other.dense_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  Status resize(std::uint64_t bytes) {
    if (bytes > capacity_) {
      release();
      if (bytes > (UINT64_C(1) << 62)) return too_large(bytes);
      const std::size_t rounded = (static_cast<std::size_t>(bytes) + kAlign - 1) / kAlign * kAlign;
      if (dense_ && memory_->is_equal(*std::pmr::new_delete_resource())) data_ = map_huge_pages(rounded);
      mapped_ = data_ != nullptr;
      try {
        if (!mapped_) data_ = static_cast<std::uint8_t*>(memory_->allocate(rounded, kAlign));
      } catch (const std::bad_alloc&) {
        return too_large(bytes);
      }
      capacity_ = rounded;
    }
    size_ = static_cast<std::size_t>(bytes);
    return {};
  }
  std::uint8_t* data() { return data_; }
  const std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<std::uint8_t> span() { return {data_, size_}; }

 private:
  static constexpr std::size_t kAlign = 64;
  static Status too_large(std::uint64_t bytes) {
    return Status(StatusCode::out_of_memory, "out of memory: {0} bytes were wanted", static_cast<std::int64_t>(bytes));
  }
  void release() noexcept {
    if (mapped_) {
      unmap_huge_pages(data_, capacity_);
    } else if (data_ != nullptr) {
      memory_->deallocate(data_, capacity_, kAlign);
    }
    mapped_ = false;
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  std::pmr::memory_resource* memory_;
  bool dense_;
  bool mapped_ = false;
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// As many buffers as tasks run at once; made on first use, reused ever after.
class BufferPool {
 public:
  /// `bytes`: of the buffers of lend().
  explicit BufferPool(std::size_t bytes = 0) : bytes_(bytes) {}

  /// A buffer on loan; goes back to the pool when it dies.
  class Lease {
   public:
    Lease(BufferPool& pool, AlignedBuffer buffer) : pool_(&pool), buffer_(std::move(buffer)) {}
    Lease(Lease&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), buffer_(std::move(other.buffer_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {  // NOLINT(bugprone-exception-escape): lend() reserved the place that giving back takes
      if (pool_ != nullptr) pool_->give_back(std::move(buffer_));
    }
    std::span<std::uint8_t> span() { return buffer_.span(); }
    Status resize(std::size_t bytes) { return buffer_.resize(bytes); }

   private:
    BufferPool* pool_;
    AlignedBuffer buffer_;
  };

  /// May throw std::bad_alloc.
  Result<Lease> lend() { return lend(bytes_); }
  /// A buffer of so many bytes: one that was given back, grown if need be, or a new one.
  Result<Lease> lend(std::size_t bytes) {
    AlignedBuffer buffer(true);
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        buffer = std::move(free_.back());
        free_.pop_back();
      } else {
        free_.reserve(made_ + 1);  // so that giving back cannot fail
        ++made_;
      }
    }
    Lease lease(*this, std::move(buffer));
    QUERN_RETURN_IF_ERROR(lease.resize(bytes));
    return lease;
  }
  /// Frees the memory of the buffers that are not on loan.
  void clear() {
    const std::lock_guard lock(mutex_);
    made_ -= free_.size();
    free_.clear();
  }

 private:
  void give_back(AlignedBuffer buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

  std::mutex mutex_;
  Vector<AlignedBuffer> free_;
  std::size_t made_ = 0;
  std::size_t bytes_;
};

}  // namespace quern

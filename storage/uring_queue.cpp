// Blocks handed to the kernel by io_uring, so that a device has several of them at once; see io_uring(7).
#include "storage/write_queue.h"

#ifdef QUERN_HAVE_URING

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

namespace quern::storage {
namespace {

Status io_failure(int number) { return Status(StatusCode::io_error, "the system refused with error {0}", number); }

class UringQueue final : public WriteQueue {
 public:
  explicit UringQueue(unsigned depth) : depth_(std::clamp(depth, 1U, kMaxQueueDepth)) {}
  ~UringQueue() override {
    if (!ready_) return;
    // The kernel reads the blocks until then.
    while (under_way_ != 0) {
      if (!reap().ok()) break;
    }
    io_uring_queue_exit(&ring_);
    if (fd_ >= 0) ::close(fd_);
    memory_->deallocate(blocks_, bytes(), kQueueAlignment);
  }

  bool start(int descriptor, bool direct) {
    memory_ = current_memory();
    if (io_uring_queue_init(depth_, &ring_, 0) != 0) return false;
    try {
      blocks_ = static_cast<std::uint8_t*>(memory_->allocate(bytes(), kQueueAlignment));
    } catch (const std::bad_alloc&) {
      io_uring_queue_exit(&ring_);
      throw;
    }
    ready_ = true;
    fd_ = descriptor;
    direct_ = direct;
    return true;
  }

  Result<std::span<std::uint8_t>> block() override {
    while (under_way_ == depth_) QUERN_RETURN_IF_ERROR(reap());
    QUERN_RETURN_IF_ERROR(failure_);
    at_ = 0;
    while (slots_[at_].busy) ++at_;
    return std::span(blocks_ + at_ * kQueueBlock, kQueueBlock);
  }

  Status write(std::size_t size) override {
    QUERN_RETURN_IF_ERROR(failure_);
    Slot& slot = slots_[at_];
    slot = {written_, size, true};
    written_ += size;
    if (size % kQueueAlignment != 0) {
      // The end of the file, which need not be a whole block of the device.
      while (under_way_ != 0) QUERN_RETURN_IF_ERROR(reap());
      slot.busy = false;
      QUERN_RETURN_IF_ERROR(failure_);
      return write_rest(slot, at_, 0);
    }
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);  // there are as many as slots
    io_uring_prep_write(entry, fd_, blocks_ + at_ * kQueueBlock, static_cast<unsigned>(size), slot.offset);
    io_uring_sqe_set_data64(entry, at_);
    ++under_way_;
    int sent = -1;
    do {
      sent = io_uring_submit(&ring_);
    } while (sent == -EINTR || sent == -EAGAIN);
    if (sent >= 0) return {};
    --under_way_;
    slot.busy = false;
    return failure_ = io_failure(-sent);
  }

  Status finish() override {
    while (under_way_ != 0) QUERN_RETURN_IF_ERROR(reap());
    QUERN_RETURN_IF_ERROR(failure_);
    return ::fdatasync(fd_) == 0 ? Status() : io_failure(errno);
  }

 private:
  struct Slot {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    bool busy = false;
  };
  std::size_t bytes() const { return depth_ * kQueueBlock; }

  /// Waits for one write to end. A status that is not ok is that of waiting; a failure of the write is kept.
  Status reap() {
    io_uring_cqe* done = nullptr;
    int outcome = -1;
    do {
      outcome = io_uring_wait_cqe(&ring_, &done);
    } while (outcome == -EINTR || outcome == -EAGAIN);
    if (outcome != 0) return failure_ = io_failure(-outcome);
    const auto at = static_cast<std::size_t>(io_uring_cqe_get_data64(done));
    const int moved = done->res;
    io_uring_cqe_seen(&ring_, done);
    --under_way_;
    Slot& slot = slots_[at];
    slot.busy = false;
    if (moved >= 0 && static_cast<std::size_t>(moved) == slot.bytes) return {};
    // A file system may refuse O_DIRECT as late as here, and several blocks that were under way at once; or it has no
    // writes by io_uring.
    const bool again = moved >= 0 || moved == -EINTR || moved == -EAGAIN || moved == -EINVAL || moved == -EOPNOTSUPP;
    const Status status =
        again ? write_rest(slot, at, static_cast<std::size_t>(std::max(moved, 0))) : io_failure(-moved);
    if (!status.ok() && failure_.ok()) failure_ = status;
    return {};
  }

  /// What is left of a block, through the page cache.
  Status write_rest(const Slot& slot, std::size_t at, std::size_t done) {
    if (direct_) {
      const int flags = ::fcntl(fd_, F_GETFL);
      if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) != 0) return io_failure(errno);
      direct_ = false;
    }
    while (done < slot.bytes) {
      const ssize_t moved =
          ::pwrite(fd_, blocks_ + at * kQueueBlock + done, slot.bytes - done, static_cast<off_t>(slot.offset + done));
      if (moved < 0 && errno == EINTR) continue;
      if (moved <= 0) return io_failure(moved == 0 ? EIO : errno);
      done += static_cast<std::size_t>(moved);
    }
    return {};
  }

  const unsigned depth_;
  std::pmr::memory_resource* memory_ = nullptr;
  io_uring ring_{};
  bool ready_ = false;
  int fd_ = -1;
  bool direct_ = false;
  std::uint8_t* blocks_ = nullptr;
  std::array<Slot, kMaxQueueDepth> slots_{};
  std::size_t at_ = 0;
  unsigned under_way_ = 0;
  std::uint64_t written_ = 0;
  Status failure_;
};

}  // namespace

std::unique_ptr<WriteQueue> make_uring_queue(int descriptor, bool direct, unsigned depth) {
  std::unique_ptr<UringQueue> queue(new UringQueue(depth));
  if (!queue->start(descriptor, direct)) return nullptr;
  return queue;
}

}  // namespace quern::storage

#else

namespace quern::storage {

std::unique_ptr<WriteQueue> make_uring_queue(int /*descriptor*/, bool /*direct*/, unsigned /*depth*/) {
  return nullptr;
}

}  // namespace quern::storage

#endif

// Walking shapes in slabs, and buffering between slabs and runs of bytes.
#include "libcompress/io/library/slabs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace quern::io {

SlabWalker::SlabWalker(const Shape& shape, std::uint64_t max_elems) : shape_(shape), done_(shape.elems() == 0) {
  const std::uint64_t most = std::max<std::uint64_t>(max_elems, 1);
  // The slowest axis whose single rows fit.
  for (std::size_t axis = shape.rank(); axis > 0; --axis) {
    cut_axis_ = axis - 1;
    if (row_elems_ * std::max<std::uint64_t>(shape[cut_axis_], 1) > most) break;
    if (cut_axis_ > 0) row_elems_ *= shape[cut_axis_];
  }
  rows_ = std::max<std::uint64_t>(most / std::max<std::uint64_t>(row_elems_, 1), 1);
}

std::optional<Slab> SlabWalker::next() {
  if (done_) return std::nullopt;
  Slab slab;
  slab.rank = shape_.rank();
  if (slab.rank == 0) {
    done_ = true;
    return slab;
  }
  slab.start = at_;
  for (std::size_t axis = 0; axis < slab.rank; ++axis)
    slab.count[axis] = axis < cut_axis_   ? 1
                       : axis > cut_axis_ ? shape_[axis]
                                          : std::min(rows_, shape_[axis] - at_[axis]);
  slab.elems = slab.count[cut_axis_] * row_elems_;
  at_[cut_axis_] += slab.count[cut_axis_];
  std::size_t axis = cut_axis_;
  while (at_[axis] == shape_[axis]) {
    if (axis == 0) {
      done_ = true;
      break;
    }
    at_[axis] = 0;
    ++at_[--axis];
  }
  return slab;
}

SlabReader::SlabReader(ArrayMeta meta, const Shape& items, std::size_t item_bytes)
    : meta_(std::move(meta)), item_bytes_(item_bytes), walker_(items, kSlabBytes / item_bytes) {}

Result<std::size_t> SlabReader::read(std::span<std::uint8_t> out) {
  const std::size_t element = dtype_bytes(meta_.dtype);
  const std::size_t want = out.size() - out.size() % element;
  const bool aligned = reinterpret_cast<std::uintptr_t>(out.data()) % element == 0;
  std::size_t done = 0;
  while (done < want) {
    if (buffer_at_ == buffer_.size()) {
      const auto slab = walker_.next();
      if (!slab) return done;
      const auto bytes = static_cast<std::size_t>(slab->elems * item_bytes_);
      if (aligned && bytes <= want - done) {
        QUERN_RETURN_IF_ERROR(read_slab(*slab, out.data() + done));
        done += bytes;
        continue;
      }
      buffer_.resize(bytes);
      buffer_at_ = 0;
      QUERN_RETURN_IF_ERROR(read_slab(*slab, buffer_.data()));
    }
    const std::size_t count = std::min(want - done, buffer_.size() - buffer_at_);
    std::memcpy(out.data() + done, buffer_.data() + buffer_at_, count);
    buffer_at_ += count;
    done += count;
  }
  if (want == 0 && meta_.shape.elems() != 0)
    return Status(StatusCode::invalid_argument, "the buffer has {0} bytes; an element has {1}",
                  static_cast<std::int64_t>(out.size()), static_cast<std::int64_t>(element));
  return done;
}

SlabWriter::SlabWriter(const Shape& items, std::size_t item_bytes)
    : item_bytes_(item_bytes),
      array_bytes_(items.elems() * item_bytes),
      remaining_(array_bytes_),
      walker_(items, kSlabBytes / item_bytes) {}

Status SlabWriter::write(std::span<const std::uint8_t> bytes) {
  if (bytes.size() > remaining_)
    return {StatusCode::invalid_argument, "more bytes were written than the {0} of the array",
            static_cast<std::int64_t>(array_bytes_)};
  remaining_ -= bytes.size();
  while (!bytes.empty()) {
    if (!slab_) slab_ = walker_.next();
    const auto whole = static_cast<std::size_t>(slab_->elems * item_bytes_);
    if (buffer_.empty()) buffer_.reserve(whole);
    const std::size_t count = std::min(whole - buffer_.size(), bytes.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (buffer_.size() < whole) continue;
    QUERN_RETURN_IF_ERROR(write_slab(*slab_, buffer_.data()));
    buffer_.clear();
    slab_.reset();
  }
  return {};
}

Status SlabWriter::finish() {
  if (remaining_ != 0)
    return {StatusCode::invalid_argument, "{0} of the array's {1} bytes were not written",
            static_cast<std::int64_t>(remaining_), static_cast<std::int64_t>(array_bytes_)};
  return close_file();
}

Status sync_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {StatusCode::io_error, "the file that was written cannot be opened again (errno {0})", errno};
  const int failed = ::fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
  ::close(fd);
  if (failed != 0) return {StatusCode::io_error, "syncing to the disk failed (errno {0})", failed};
  return {};
}

}  // namespace quern::io

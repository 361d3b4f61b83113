// Segments of a memory file: mapped once in order, and scattered ones once more in the order of their tensor.
#include "checkpoint/engine/segment_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace quern::checkpoint {
namespace {

constexpr std::uint64_t kSegment = SegmentRing::kSegmentBytes;
constexpr std::uint64_t kAlign = 64;  // of tensors in a segment

std::uint64_t segments_for(std::uint64_t bytes) { return (bytes + kSegment - 1) / kSegment; }

}  // namespace

Result<std::unique_ptr<SegmentRing>> SegmentRing::open(std::uint64_t bytes, Report& report) {
  const auto refused = [&](const char* what, int error) {
    return fail_file(report, join({"the ring of ", decimal(bytes), " bytes"}), what,
                     Status(StatusCode::io_error, "no memory", error));
  };
  if (bytes < kSegment)
    return fail(report, StatusCode::invalid_argument,
                join({"a ring of ", decimal(bytes), " bytes is smaller than a segment; give it at least 2097152"}));
  if (bytes > (std::uint64_t{1} << 46))
    return fail(report, StatusCode::invalid_argument, join({"a ring of ", decimal(bytes), " bytes is too large"}));
  std::unique_ptr<SegmentRing> ring(new SegmentRing);
  const std::uint64_t count = segments_for(bytes);
  ring->file_ = memfd_create("quern-ring", MFD_CLOEXEC);
  if (ring->file_ < 0) return refused("make it", errno);
  // Taken now: a page that is not to be had later would be a signal.
  int error = 0;
  do error = posix_fallocate(ring->file_, 0, static_cast<off_t>(count * kSegment));
  while (error == EINTR);
  if (error != 0) return refused("take its memory", error);
  void* const memory =
      mmap(nullptr, count * kSegment, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->file_, 0);
  if (memory == MAP_FAILED) return refused("map it", errno);
  // A forked process, of a data loader say, has no use for it. A system that cannot leave it out does no harm.
  (void)madvise(memory, count * kSegment, MADV_DONTFORK);
  ring->memory_ = static_cast<std::uint8_t*>(memory);
  ring->users_.resize(static_cast<std::size_t>(count));
  ring->free_ = count;
  return ring;
}

SegmentRing::~SegmentRing() {
  if (memory_ != nullptr) munmap(memory_, users_.size() * kSegment);
  if (file_ >= 0) close(file_);
}

bool SegmentRing::find_run(std::uint64_t count, std::size_t& first) const {
  const std::size_t n = users_.size();
  std::uint64_t run = 0;
  // Round once, and so far on that a run over the place where the search begins is met.
  for (std::size_t k = 0; k < 2 * n; ++k) {
    const std::size_t at = (next_ + k) % n;
    if (at == 0) run = 0;  // a run does not go over the end
    run = users_[at] == 0 ? run + 1 : 0;
    if (run == count) {
      first = at + 1 - static_cast<std::size_t>(count);
      return true;
    }
  }
  return false;
}

bool SegmentRing::map_side_by_side(RingPlace& place) const {
  const std::size_t bytes = place.segments.size() * kSegment;
  void* const room = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  for (std::size_t i = 0; i < place.segments.size(); ++i) {
    void* const at = static_cast<std::uint8_t*>(room) + i * kSegment;
    const auto offset = static_cast<off_t>(place.segments[i] * kSegment);
    if (mmap(at, kSegment, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, offset) == MAP_FAILED) {
      munmap(room, bytes);
      return false;
    }
  }
  (void)madvise(room, bytes, MADV_DONTFORK);
  place.view = room;
  return true;
}

void SegmentRing::use(RingPlace& place) {
  for (const std::uint32_t segment : place.segments)
    if (users_[segment]++ == 0) --free_;
  peak_ = std::max(peak_, users_.size() - free_);
  next_ = (place.segments.back() + std::size_t{1}) % users_.size();
}

std::optional<RingPlace> SegmentRing::take(std::uint64_t bytes) {
  RingPlace place;
  place.bytes = bytes;
  const std::uint64_t begin = tail_ ? (tail_used_ + kAlign - 1) / kAlign * kAlign : kSegment;
  const std::uint64_t in_tail = begin < kSegment ? kSegment - begin : 0;
  const std::uint64_t more = in_tail >= bytes ? 0 : segments_for(bytes - in_tail);
  if (more > free_) return std::nullopt;
  const std::uint64_t whole = segments_for(bytes);
  std::uint64_t used = in_tail != 0 ? begin + bytes : bytes;  // counted from the first segment's begin
  std::size_t first = 0;
  const auto follows_tail = [&] {
    if (*tail_ + more >= users_.size()) return false;
    for (std::size_t i = *tail_ + 1; i <= *tail_ + more; ++i)
      if (users_[i] != 0) return false;
    return true;
  };
  if (in_tail != 0 && follows_tail()) {
    for (std::uint64_t i = 0; i <= more; ++i) place.segments.push_back(static_cast<std::uint32_t>(*tail_ + i));
    place.data = memory_ + *tail_ * kSegment + begin;
  } else if (whole <= free_ && find_run(whole, first)) {
    for (std::uint64_t i = 0; i < whole; ++i) place.segments.push_back(static_cast<std::uint32_t>(first + i));
    place.data = memory_ + first * kSegment;
    used = bytes;
  } else {
    if (in_tail != 0) place.segments.push_back(static_cast<std::uint32_t>(*tail_));
    std::uint64_t missing = more;
    for (std::size_t i = 0; missing != 0; ++i) {
      const std::size_t at = (next_ + i) % users_.size();
      if (users_[at] != 0) continue;
      place.segments.push_back(static_cast<std::uint32_t>(at));
      --missing;
    }
    if (!map_side_by_side(place)) return std::nullopt;
    place.data = static_cast<std::uint8_t*>(place.view) + (in_tail != 0 ? begin : 0);
  }
  tail_ = place.segments.back();
  tail_used_ = used - (place.segments.size() - 1) * kSegment;
  use(place);
  return place;
}

void SegmentRing::give_back(RingPlace& place) {
  if (place.view != nullptr) munmap(place.view, place.segments.size() * kSegment);
  for (const std::uint32_t segment : place.segments) {
    if (--users_[segment] != 0) continue;
    ++free_;
    if (tail_ && *tail_ == segment) tail_.reset();
  }
  place = RingPlace();
}

}  // namespace quern::checkpoint

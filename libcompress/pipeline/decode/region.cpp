// Random access: a box of the user's array as runs of elements, runs as pieces of chunks, chunks decoded once a
// delivery.
#include <algorithm>
#include <cstring>
#include <new>

#include "libcompress/pipeline/decode/decoder.h"

namespace quern {
namespace {

constexpr std::size_t kPiecesWanted = std::size_t{1} << 16;

/// The runs of consecutive elements that make up a box, in C order.
class BoxRuns {
 public:
  BoxRuns(const Box& box, const Shape& shape) : box_(box) {
    std::uint64_t stride = 1;
    for (std::size_t a = shape.rank(); a-- > 0; stride *= shape[a]) {
      strides_[a] = stride;
      if (!outer_known_) {
        length_ = (box.end[a] - box.begin[a]) * stride;
        const bool whole = box.begin[a] == 0 && box.end[a] == shape[a];
        flat_ = box.begin[a] * stride;
        outer_ = a;
        outer_known_ = !whole;
      }
    }
    for (std::size_t a = 0; a < outer_; ++a) {
      at_[a] = box.begin[a];
      flat_ += at_[a] * strides_[a];
    }
  }

  std::uint64_t begin() const { return flat_; }
  std::uint64_t length() const { return length_; }
  /// Goes to the next run; false after the last.
  bool next() {
    for (std::size_t a = outer_; a-- > 0;) {
      flat_ += strides_[a];
      if (++at_[a] < box_.end[a]) return true;
      flat_ -= (box_.end[a] - box_.begin[a]) * strides_[a];
      at_[a] = box_.begin[a];
    }
    return false;
  }

 private:
  Box box_;
  std::array<std::uint64_t, kMaxRank> strides_{};
  std::array<std::uint64_t, kMaxRank> at_{};
  std::uint64_t flat_ = 0;
  std::uint64_t length_ = 1;
  std::size_t outer_ = 0;  // axes before it are walked
  bool outer_known_ = false;
};

/// Cuts runs at the borders of chunks.
class PieceCutter {
 public:
  explicit PieceCutter(const SegmentLayout& layout) : layout_(layout) {}

  /// The piece that begins at a flat index and has at most `count` elements.
  RegionPiece cut(std::uint64_t flat, std::uint64_t count) {
    const auto& extents = layout_.grid().extents;
    const std::uint64_t row = flat / extents[2];
    const Index3 at{row / extents[1], row % extents[1], flat % extents[2]};
    const auto place = layout_.place_of(at);
    if (!box_known_ || place.segment != segment_) {
      segment_ = place.segment;
      box_ = layout_.segment_box(segment_);
      box_known_ = true;
    }
    const std::uint64_t chunk = layout_.grid().chunk[2];
    const std::uint64_t row_left = std::min(extents[2], (at[2] / chunk + 1) * chunk) - at[2];
    RegionPiece piece;
    piece.segment = place.segment;
    piece.k = place.k;
    piece.from = ((at[0] - box_.begin[0]) * box_.extents[1] + (at[1] - box_.begin[1])) * box_.extents[2] +
                 (at[2] - box_.begin[2]);
    piece.count = std::min(count, row_left);
    return piece;
  }

 private:
  const SegmentLayout& layout_;
  GridBox box_;
  std::uint64_t segment_ = 0;
  bool box_known_ = false;
};

}  // namespace

// Decodes the segments that the pieces name, each once, and copies the pieces to their places.
Status StreamDecoder::deliver(Vector<RegionPiece>& pieces, std::uint8_t* out) {
  std::sort(pieces.begin(), pieces.end(), [](const RegionPiece& a, const RegionPiece& b) {
    return a.segment != b.segment ? a.segment < b.segment : a.from < b.from;
  });
  const std::uint64_t box_bytes = target_.layout.max_segment_elems() * element_bytes_;
  const std::uint64_t held = window_.size() + pieces.capacity() * sizeof(RegionPiece);
  QUERN_RETURN_IF_ERROR(need_memory(held + scratch_bytes() + bytes_per_segment() + box_bytes));
  // A segment in flight needs its box beside what decoding needs: count two for one.
  const std::uint64_t at_once = std::max<std::uint64_t>(1, segments_at_once(held) / 2);
  if (jobs_.size() < at_once) jobs_.resize(static_cast<std::size_t>(at_once));
  if (region_boxes_.size() < at_once) region_boxes_.resize(static_cast<std::size_t>(at_once));
  std::size_t begin = 0;
  while (begin < pieces.size()) {
    std::size_t end = begin;
    std::uint64_t segments = 0;
    while (end < pieces.size()) {
      const bool is_new = end == begin || pieces[end].segment != pieces[end - 1].segment;
      if (is_new && segments == at_once) break;
      if (is_new) ++segments;
      ++end;
    }
    QUERN_RETURN_IF_ERROR(deliver_batch(std::span(pieces).subspan(begin, end - begin), out));
    begin = end;
  }
  pieces.clear();
  return {};
}

Status StreamDecoder::deliver_batch(std::span<const RegionPiece> pieces, std::uint8_t* out) {
  std::size_t count = 0;
  for (const RegionPiece& piece : pieces) {
    if (count == 0 || jobs_[count - 1].segment != piece.segment) {
      SegmentJob& job = jobs_[count];
      job.segment = piece.segment;
      job.wanted = 0;
      const GridBox box = target_.layout.segment_box(piece.segment);
      QUERN_RETURN_IF_ERROR(region_boxes_[count].resize(box.elems() * element_bytes_));
      job.out = {region_boxes_[count].data(), box.extents, {box.extents[1] * box.extents[2], box.extents[2]}};
      const Status read = segments_->read_at(job);
      if (!read.ok() && !options_.keep_going) return read;
      if (!read.ok()) job.read_status = read;
      ++count;
    }
    jobs_[count - 1].wanted |= UINT64_C(1) << piece.k;
  }
  QUERN_RETURN_IF_ERROR(give_references({jobs_.data(), count}));
  QUERN_RETURN_IF_ERROR(batch_->decode({jobs_.data(), count}, report_.holes));
  report_.bytes_read = bytes_fetched();
  std::size_t j = 0;
  for (const RegionPiece& piece : pieces) {
    if (jobs_[j].segment != piece.segment) ++j;
    std::memcpy(out + piece.to * element_bytes_, region_boxes_[j].data() + piece.from * element_bytes_,
                static_cast<std::size_t>(piece.count) * element_bytes_);
  }
  return {};
}

Status StreamDecoder::region_bytes(const Box& box, const MutableArrayView& out) {
  QUERN_RETURN_IF_ERROR(box.check(this->shape()));
  QUERN_ASSIGN_OR_RETURN(const Shape shape, box.shape());
  if (out.dtype != header_.dtype)
    return Status(StatusCode::invalid_argument, "the array has another element type than the stream");
  if (!(out.shape == shape)) return Status(StatusCode::invalid_shape, "the array has another shape than the region");
  if (!source_.can_seek())
    return Status(StatusCode::unsupported, "random access needs a source that can seek; this one cannot");
  const std::uint64_t total = shape.elems();
  if (total == 0) return {};
  if (out.data == nullptr) return Status(StatusCode::invalid_argument, "the array has no memory");
  auto* to = static_cast<std::uint8_t*>(out.data);
  const std::size_t most =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(memory_limit_ / 16 / sizeof(RegionPiece), 256, kPiecesWanted));
  Vector<RegionPiece> pieces;
  pieces.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(most, total)));
  PieceCutter cutter(target_.layout);
  BoxRuns runs(box, this->shape());
  std::uint64_t done = 0;
  do {
    for (std::uint64_t i = 0; i < runs.length();) {
      RegionPiece piece = cutter.cut(runs.begin() + i, runs.length() - i);
      piece.to = done;
      done += piece.count;
      i += piece.count;
      pieces.push_back(piece);
      if (pieces.size() < most) continue;
      QUERN_RETURN_IF_ERROR(deliver(pieces, to));
      if (progress_ && !progress_(done, total))
        return Status(StatusCode::cancelled, "cancelled after {0} elements", static_cast<std::int64_t>(done));
    }
  } while (runs.next());
  return deliver(pieces, to);
}

Status StreamDecoder::region(const Box& box, const MutableArrayView& out) {
  try {
    return region_bytes(box, out);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern

// Sequential and random reading of segments.
#include "libcompress/pipeline/decode/segment_source.h"

#include <algorithm>
#include <array>
#include <utility>

namespace quern {
namespace {

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

Status SegmentSource::load_index() {
  if (!offsets_.empty()) return {};
  if (!source_.can_seek())
    return Status(StatusCode::unsupported, "random access needs a source that can seek; this one cannot");
  moved_ = true;
  const Status from_end = index_from_end();
  if (from_end.ok() || from_end.code() == StatusCode::memory_limit) return from_end;
  // A damaged or cut stream behind this one must not keep its own index from being found.
  return index_by_walking().ok() ? Status() : from_end;
}

Status SegmentSource::index_from_end() {
  StreamIndex index;
  QUERN_RETURN_IF_ERROR(load_stream_index(source_, {start_, header_bytes_, header_.checksum, layout_.segments()},
                                          memory_limit_, index, fetched_));
  offsets_ = std::move(index.offsets);
  trailer_bytes_ = index.trailer_bytes;
  return {};
}

Status SegmentSource::index_by_walking() {
  const std::size_t width = segment_size_width(layout_);
  const std::uint64_t first = start_ + header_bytes_;
  if (first > source_.size() || layout_.segments() > (source_.size() - first) / width)
    return Status(StatusCode::truncated, "the data is too short for {0} segments", number(layout_.segments()));
  QUERN_RETURN_IF_ERROR(need_index_memory(8 * layout_.segments() + kFooterBytes, layout_.segments(), memory_limit_));
  Vector<std::uint64_t> offsets{header_bytes_};
  TrailerBuilder builder;
  for (std::uint64_t segment = 0; segment < layout_.segments(); ++segment) {
    QUERN_RETURN_IF_ERROR(source_.seek(start_ + offsets.back()));
    std::array<std::uint8_t, 8> prefix{};
    QUERN_ASSIGN_OR_RETURN(const std::size_t have, fetch(std::span(prefix).first(width)));
    if (have < width) return Status(StatusCode::truncated, "segment {0}: the stream ends before it", number(segment));
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, read_segment_size({prefix.data(), width}, layout_, segment));
    builder.add(size);
    offsets.push_back(offsets.back() + size);
  }
  QUERN_RETURN_IF_ERROR(source_.seek(start_ + offsets.back()));
  QUERN_RETURN_IF_ERROR(read_trailer(builder, offsets.back()).status());
  trailer_bytes_ = builder.trailer_bytes();
  offsets_ = std::move(offsets);
  return {};
}

Result<std::size_t> SegmentSource::fetch(std::span<std::uint8_t> out) {
  QUERN_ASSIGN_OR_RETURN(const std::size_t have, read_up_to(source_, out));
  fetched_ += have;
  return have;
}

// Everything before the chunks, to the job's storage; false when it is not as it should be.
Result<bool> SegmentSource::read_head(SegmentJob& job, std::uint64_t at, std::uint64_t size) {
  const auto room = job.storage.span();
  QUERN_RETURN_IF_ERROR(source_.seek(start_ + at));
  QUERN_ASSIGN_OR_RETURN(std::size_t have, fetch(room.first(std::min(room.size(), kSegmentPrefixBytes))));
  const auto bytes = segment_head_bytes(room.first(have), layout_, job.segment);
  if (!bytes.ok() || *bytes > size) return false;
  if (*bytes > have) {
    QUERN_ASSIGN_OR_RETURN(const std::size_t more, fetch(room.subspan(have, static_cast<std::size_t>(*bytes) - have)));
    have += more;
  }
  parse_segment(room.first(std::min(have, static_cast<std::size_t>(*bytes))), layout_, {header_.checksum, job.segment},
                job.parsed);
  std::uint64_t whole = *bytes + kSegmentChecksumBytes;
  for (std::size_t k = 0; k < job.parsed.count; ++k) whole += job.parsed.sizes[k];
  return job.parsed.head_intact && whole == size && !job.parsed.level_table.empty();
}

Result<bool> SegmentSource::read_in_part(SegmentJob& job, std::uint64_t at, std::uint64_t size) {
  if (options_.level == 0 || !layout_.has_level_tables() || !source_.can_seek()) return false;
  moved_ = true;
  QUERN_RETURN_IF_ERROR(job.storage.resize(size));
  QUERN_ASSIGN_OR_RETURN(const bool has_head, read_head(job, at, size));
  if (!has_head || !read_level_table(job.parsed, job.segment, options_.level, job.beginnings).ok()) return false;
  const auto room = job.storage.span();
  std::uint64_t chunk_at = at + job.parsed.chunks_at;
  auto used = static_cast<std::size_t>(job.parsed.chunks_at);
  for (std::size_t k = 0; k < job.parsed.count; ++k) {
    const auto wanted = static_cast<std::size_t>(job.beginnings[k].bytes);
    std::size_t have = 0;
    if (start_ + chunk_at <= source_.size()) {
      QUERN_RETURN_IF_ERROR(source_.seek(start_ + chunk_at));
      QUERN_ASSIGN_OR_RETURN(have, fetch(room.subspan(used, wanted)));
    }
    used += have;
    if (have < wanted) {
      job.read_status = Status(StatusCode::truncated, "segment {0}: the stream ends before what level {1} needs of it",
                               number(job.segment), number(options_.level));
      break;
    }
    chunk_at += job.parsed.sizes[k];
  }
  job.bytes = room.first(used);
  job.in_part = true;
  return true;
}

// Reads up to `size` bytes of a segment, `have` of which stand in the job's storage already.
Status SegmentSource::read_sized(SegmentJob& job, std::uint64_t size, std::size_t have) {
  QUERN_ASSIGN_OR_RETURN(const std::size_t more, fetch(job.storage.span().subspan(have)));
  job.bytes = job.storage.span().first(have + more);
  if (job.bytes.size() < size)
    job.read_status = Status(StatusCode::truncated, "segment {0}: the stream ends after {1} bytes of it",
                             number(job.segment), number(job.bytes.size()));
  return {};
}

Status SegmentSource::read_at(SegmentJob& job) {
  job.bytes = {};
  job.in_part = false;
  job.read_status = {};
  QUERN_RETURN_IF_ERROR(load_index());
  const std::uint64_t size = offsets_[job.segment + 1] - offsets_[job.segment];
  if (size > max_segment_bytes(layout_, job.segment))
    return Status(StatusCode::corrupt, "segment {0}: its size, {1} bytes, is impossible", number(job.segment),
                  number(size));
  QUERN_ASSIGN_OR_RETURN(job.in_part, read_in_part(job, offsets_[job.segment], size));
  if (job.in_part) return {};
  QUERN_RETURN_IF_ERROR(job.storage.resize(size));
  moved_ = true;
  QUERN_RETURN_IF_ERROR(source_.seek(start_ + offsets_[job.segment]));
  return read_sized(job, size, 0);
}

Status SegmentSource::return_to_sequence() {
  if (!moved_) return {};
  QUERN_RETURN_IF_ERROR(source_.seek(start_ + bytes_read_));
  moved_ = false;
  return {};
}

Status SegmentSource::read_sequential(SegmentJob& job) {
  QUERN_RETURN_IF_ERROR(return_to_sequence());
  const std::size_t width = segment_size_width(layout_);
  std::array<std::uint8_t, 8> prefix{};
  QUERN_ASSIGN_OR_RETURN(const std::size_t have, fetch(std::span(prefix).first(width)));
  bytes_read_ += have;
  if (have < width) return Status(StatusCode::truncated, "segment {0}: the stream ends before it", number(job.segment));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, read_segment_size({prefix.data(), width}, layout_, job.segment));
  QUERN_ASSIGN_OR_RETURN(job.in_part, read_in_part(job, bytes_read_ - width, size));
  if (job.in_part) {
    bytes_read_ += size - width;
    builder_.add(size);
    return {};
  }
  if (moved_) {
    moved_ = false;
    QUERN_RETURN_IF_ERROR(source_.seek(start_ + bytes_read_));
  }
  QUERN_RETURN_IF_ERROR(job.storage.resize(size));
  std::copy_n(prefix.begin(), width, job.storage.data());
  QUERN_RETURN_IF_ERROR(read_sized(job, size, width));
  bytes_read_ += job.bytes.size() - width;
  builder_.add(size);
  return {};
}

Status SegmentSource::read_next(SegmentJob& job) {
  job.segment = next_++;
  job.bytes = {};
  job.in_part = false;
  job.read_status = {};
  if (!options_.keep_going) return read_sequential(job);
  // A damaged size must not take what follows with it: where there is an index, it leads from segment to segment.
  if (source_.can_seek()) {
    if (!index_tried_) {
      index_tried_ = true;
      if (!load_index().ok()) offsets_.clear();
    }
    if (!offsets_.empty()) {
      job.read_status = read_at(job);
      return {};
    }
  }
  if (lost_.ok()) lost_ = read_sequential(job);
  if (!lost_.ok()) job.read_status = lost_;
  return {};
}

Status SegmentSource::check_what_follows() {
  std::array<std::uint8_t, 8> bytes{};
  QUERN_ASSIGN_OR_RETURN(const std::size_t have, fetch(bytes));
  if (begins_like_stream({bytes.data(), have})) return {};
  return Status(StatusCode::trailing_data, "data that is no stream follows after byte {0}", number(bytes_read_));
}

// With keep_going, whatever is wrong with the end of the stream is no reason to withhold its values.
Status SegmentSource::finish() {
  if (!options_.keep_going) return finish_sequence();
  if (!offsets_.empty()) {
    bytes_read_ = offsets_.back() + trailer_bytes_;
    return source_.seek(start_ + bytes_read_);
  }
  if (lost_.ok()) static_cast<void>(finish_sequence());
  return {};
}

Result<std::size_t> SegmentSource::read_trailer(const TrailerBuilder& builder, std::uint64_t bytes_before) {
  const Vector<std::uint8_t> expected = builder.finish(header_.checksum, bytes_before);
  Vector<std::uint8_t> found(expected.size());
  QUERN_ASSIGN_OR_RETURN(const std::size_t have, fetch(found));
  if (have < found.size()) return Status(StatusCode::truncated, "the stream ends inside its trailer");
  if (found != expected)
    return Status(StatusCode::corrupt, "the trailer is damaged: it does not match the segments before it");
  return have;
}

Status SegmentSource::finish_sequence() {
  QUERN_RETURN_IF_ERROR(return_to_sequence());
  QUERN_ASSIGN_OR_RETURN(const std::size_t bytes, read_trailer(builder_, bytes_read_));
  bytes_read_ += bytes;
  return options_.more_streams ? Status() : check_what_follows();
}

}  // namespace quern

// Layout of a segment: size | mask size | table | mask | head check | chunks | checksum.
#include "libcompress/format/segment.h"

#include <algorithm>

#include "libcompress/format/checksum.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern {
namespace {

std::uint32_t head_check(const SegmentPlace& place, std::span<const std::uint8_t> head) {
  return static_cast<std::uint32_t>(bound_checksum64(place.header_checksum, place.segment, head));
}

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// Fills forms, checks and sizes; `sizes` receives each chunk's stored bytes.
Status read_table(Reader& in, const SegmentLayout& layout, const SegmentPlace& place, ParsedSegment& out,
                  std::array<std::uint64_t, kMaxSegmentChunks>& sizes) {
  for (std::size_t k = 0; k < out.count; ++k) {
    QUERN_ASSIGN_OR_RETURN(const auto bytes, in.bytes(segment_entry_bytes(layout)));
    SegmentEntry entry;
    if (!get_segment_entry(bytes.data(), layout, raw_bytes(layout, layout.chunk_box(place.segment, k)), entry))
      return Status(StatusCode::corrupt, "segment {0}, chunk {1}: its stored size is not below that of its values",
                    number(place.segment), number(layout.first_chunk(place.segment) + k));
    out.chunks[k].form = entry.form;
    out.chunks[k].check = entry.check;
    sizes[k] = entry.stored;
  }
  return {};
}

// Everything before the chunks. `body` is where the chunks begin.
Status parse_head(std::span<const std::uint8_t> bytes, const SegmentLayout& layout, const SegmentPlace& place,
                  ParsedSegment& out, std::array<std::uint64_t, kMaxSegmentChunks>& sizes, std::size_t& body) {
  Reader in(bytes);
  QUERN_RETURN_IF_ERROR(in.skip(segment_size_width(layout)));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t mask_bytes,
                         in.varint(raw_bytes(layout, layout.segment_box(place.segment))));
  const std::size_t table_at = in.position();
  QUERN_RETURN_IF_ERROR(in.skip(out.count * segment_entry_bytes(layout)));
  QUERN_ASSIGN_OR_RETURN(out.mask, in.bytes(mask_bytes));
  const std::size_t head_bytes = in.position();
  QUERN_ASSIGN_OR_RETURN(const std::uint32_t check, in.u32());
  if (check != head_check(place, bytes.first(head_bytes)))
    return Status(StatusCode::checksum_mismatch, "segment {0}: its table or mask is damaged", number(place.segment));
  Reader table(bytes.subspan(table_at, head_bytes - table_at));
  QUERN_RETURN_IF_ERROR(read_table(table, layout, place, out, sizes));
  body = in.position();
  return {};
}

// Hands out the chunks' bytes, with a status for those that are cut off.
void cut_chunks(std::span<const std::uint8_t> bytes, std::size_t body, const SegmentLayout& layout,
                const SegmentPlace& place, const std::array<std::uint64_t, kMaxSegmentChunks>& sizes,
                ParsedSegment& out) {
  std::uint64_t at = body;
  for (std::size_t k = 0; k < out.count; ++k) {
    const bool inside = at <= bytes.size() && sizes[k] <= bytes.size() - at;
    if (inside) {
      out.chunks[k].bytes = bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(sizes[k]));
    } else {
      out.chunk_status[k] = Status(StatusCode::truncated, "segment {0}, chunk {1}: the stream ends before it does",
                                   number(place.segment), number(layout.first_chunk(place.segment) + k));
    }
    at += sizes[k];
  }
}

// Compares the chunks' own checks; gives the first failure.
Status check_chunks(const SegmentLayout& layout, const SegmentPlace& place, ParsedSegment& out) {
  Status first;
  for (std::size_t k = 0; k < out.count; ++k) {
    Status& status = out.chunk_status[k];
    if (status.ok() && chunk_check(out.chunks[k].bytes) != out.chunks[k].check)
      status = Status(StatusCode::checksum_mismatch, "segment {0}, chunk {1} is damaged: its checksum does not match",
                      number(place.segment), number(layout.first_chunk(place.segment) + k));
    if (first.ok() && !status.ok()) first = status;
  }
  return first;
}

}  // namespace

std::uint16_t chunk_check(std::span<const std::uint8_t> bytes) { return static_cast<std::uint16_t>(checksum64(bytes)); }

void assemble_segment(const SegmentLayout& layout, const SegmentPlace& place, std::span<const std::uint8_t> mask,
                      std::span<const ChunkPiece> chunks, Vector<std::uint8_t>& out) {
  std::uint64_t size = segment_framing_bytes(layout, chunks.size()) - 1 + varint_bytes(mask.size()) + mask.size();
  for (const ChunkPiece& chunk : chunks) size += chunk.bytes.size();
  out.clear();
  out.reserve(static_cast<std::size_t>(size));
  Writer w(out);
  w.unsigned_of(size, segment_size_width(layout));
  w.varint(mask.size());
  for (const ChunkPiece& chunk : chunks) {
    std::array<std::uint8_t, 8> entry{};
    put_segment_entry(entry.data(), layout, {chunk.form, chunk.bytes.size(), chunk.check});
    w.bytes(std::span(entry).first(segment_entry_bytes(layout)));
  }
  w.bytes(mask);
  w.u32(head_check(place, out));
  for (const ChunkPiece& chunk : chunks) w.bytes(chunk.bytes);
  w.u64(bound_checksum64(place.header_checksum, place.segment, out));
}

Result<std::uint64_t> read_segment_size(std::span<const std::uint8_t> bytes, const SegmentLayout& layout,
                                        std::uint64_t segment) {
  Reader in(bytes);
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, in.unsigned_of(segment_size_width(layout)));
  if (size < segment_framing_bytes(layout, layout.segment_chunks(segment)) || size > max_segment_bytes(layout, segment))
    return Status(StatusCode::corrupt, "segment {0}: its size, {1} bytes, is impossible", number(segment),
                  number(size));
  return size;
}

Result<std::uint64_t> segment_head_bytes(std::span<const std::uint8_t> prefix, const SegmentLayout& layout,
                                         std::uint64_t segment) {
  Reader in(prefix);
  QUERN_RETURN_IF_ERROR(in.skip(segment_size_width(layout)));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t mask_bytes, in.varint(raw_bytes(layout, layout.segment_box(segment))));
  return in.position() + layout.segment_chunks(segment) * segment_entry_bytes(layout) + mask_bytes +
         kSegmentHeadCheckBytes;
}

void parse_segment(std::span<const std::uint8_t> bytes, const SegmentLayout& layout, const SegmentPlace& place,
                   ParsedSegment& out) {
  out = ParsedSegment{};
  out.count = static_cast<std::size_t>(layout.segment_chunks(place.segment));
  std::array<std::uint64_t, kMaxSegmentChunks> sizes{};
  std::size_t body = 0;
  const Status head = parse_head(bytes, layout, place, out, sizes, body);
  if (!head.ok()) {
    out.status = head.code() == StatusCode::truncated
                     ? Status(StatusCode::truncated, "segment {0}: the stream ends inside its table or mask",
                              number(place.segment))
                     : head;
    return;
  }
  out.head_intact = true;
  cut_chunks(bytes, body, layout, place, sizes, out);
  std::uint64_t end = body;
  for (std::size_t k = 0; k < out.count; ++k) end += sizes[k];
  const bool complete = end + kSegmentChecksumBytes == bytes.size();
  if (complete) {
    const auto covered = bytes.first(bytes.size() - kSegmentChecksumBytes);
    Reader tail(bytes.last(kSegmentChecksumBytes));
    const auto stored = tail.u64();
    if (stored.ok() && *stored == bound_checksum64(place.header_checksum, place.segment, covered)) return;
  }
  out.status = check_chunks(layout, place, out);
  if (!out.status.ok()) return;
  out.status =
      complete
          ? Status(StatusCode::checksum_mismatch, "segment {0}: its checksum does not match", number(place.segment))
      : end + kSegmentChecksumBytes > bytes.size()
          ? Status(StatusCode::truncated, "segment {0}: the stream ends inside it", number(place.segment))
          : Status(StatusCode::corrupt, "segment {0}: it is longer than its table says", number(place.segment));
}

}  // namespace quern

// Layout of a segment: size | mask size | level table size | table | mask | level table | head check | chunks |
// checksum.
#include "libcompress/format/grid/segment.h"

#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/writer.h"

namespace quern {
namespace {

std::uint32_t head_check(const SegmentPlace& place, std::span<const std::uint8_t> head) {
  return static_cast<std::uint32_t>(bound_checksum64(place.header_checksum, place.segment, head));
}

// Forms, checks and sizes from the table.
Fault read_table(std::span<const std::uint8_t> table, const SegmentLayout& layout, const SegmentPlace& place,
                 ParsedSegment& out) {
  for (std::size_t k = 0; k < out.count; ++k) {
    TableEntry entry;
    const Fault fault = read_table_entry(table, layout, place.segment, k, entry);
    out.chunks[k].form = entry.form;
    out.chunks[k].check = entry.check;
    out.sizes[k] = entry.bytes;
    if (!fault.ok()) return fault;
  }
  return {};
}

// Everything before the chunks.
Fault parse_head(std::span<const std::uint8_t> bytes, const SegmentLayout& layout, const SegmentPlace& place,
                 ParsedSegment& out) {
  const Fault cut{FormatFault::segment_head_cut, place.segment};
  SegmentHead head;
  const Fault fault = read_segment_head(bytes, layout, place.segment, head);
  if (fault.what == FormatFault::too_few_bytes || fault.what == FormatFault::ends_inside_number) return cut;
  if (!fault.ok()) return fault;
  if (head.chunks_at() > bytes.size()) return cut;
  out.chunks_at = head.chunks_at();
  const auto covered = bytes.first(static_cast<std::size_t>(head.check_at));
  ByteReader check(bytes.subspan(covered.size(), kHeadCheckBytes));
  if (check.u32() != head_check(place, covered)) return {FormatFault::segment_head_damaged, place.segment};
  out.mask = covered.subspan(static_cast<std::size_t>(head.mask_at), static_cast<std::size_t>(head.mask_bytes));
  out.level_table = covered.subspan(static_cast<std::size_t>(head.level_table_at));
  return read_table(covered.subspan(static_cast<std::size_t>(head.table_at)), layout, place, out);
}

Status chunk_status(FormatFault what, const SegmentLayout& layout, const SegmentPlace& place, std::size_t k) {
  return status_of({what, place.segment, layout.first_chunk(place.segment) + k});
}

// Hands out the chunks' bytes, with a status for those that are cut off.
void cut_chunks(std::span<const std::uint8_t> bytes, const SegmentLayout& layout, const SegmentPlace& place,
                ParsedSegment& out) {
  std::uint64_t at = out.chunks_at;
  for (std::size_t k = 0; k < out.count; ++k) {
    const bool inside = at <= bytes.size() && out.sizes[k] <= bytes.size() - at;
    if (inside) {
      out.chunks[k].bytes = bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(out.sizes[k]));
    } else {
      out.chunk_status[k] = chunk_status(FormatFault::chunk_cut, layout, place, k);
    }
    at += out.sizes[k];
  }
}

// Compares the chunks' own checks; gives the first failure.
Status check_chunks(const SegmentLayout& layout, const SegmentPlace& place, ParsedSegment& out) {
  Status first;
  for (std::size_t k = 0; k < out.count; ++k) {
    Status& status = out.chunk_status[k];
    if (status.ok() && chunk_check(out.chunks[k].bytes) != out.chunks[k].check)
      status = chunk_status(FormatFault::chunk_damaged, layout, place, k);
    if (first.ok() && !status.ok()) first = status;
  }
  return first;
}

}  // namespace

std::uint16_t chunk_check(std::span<const std::uint8_t> bytes) { return static_cast<std::uint16_t>(checksum64(bytes)); }

void assemble_segment(const SegmentLayout& layout, const SegmentPlace& place, std::span<const std::uint8_t> mask,
                      std::span<const ChunkPiece> chunks, Vector<std::uint8_t>& out,
                      std::span<const std::uint8_t> level_table) {
  std::uint64_t chunk_bytes = 0;
  for (const ChunkPiece& chunk : chunks) chunk_bytes += chunk.bytes.size();
  const std::uint64_t size = segment_bytes(layout, chunks.size(), mask.size(), chunk_bytes, level_table.size());
  out.clear();
  out.reserve(static_cast<std::size_t>(size));
  Writer w(out);
  put_segment_start(w, layout, size, mask.size(), level_table.size());
  for (const ChunkPiece& chunk : chunks) put_table_entry(w, layout, {chunk.form, chunk.check, chunk.bytes.size()});
  w.bytes(mask);
  w.bytes(level_table);
  w.u32(head_check(place, out));
  for (const ChunkPiece& chunk : chunks) w.bytes(chunk.bytes);
  w.u64(bound_checksum64(place.header_checksum, place.segment, out));
}

Result<std::uint64_t> read_segment_size(std::span<const std::uint8_t> bytes, const SegmentLayout& layout,
                                        std::uint64_t segment) {
  std::uint64_t size = 0;
  QUERN_RETURN_IF_ERROR(status_of(read_segment_size(bytes, layout, segment, size)));
  return size;
}

Result<std::uint64_t> segment_head_bytes(std::span<const std::uint8_t> prefix, const SegmentLayout& layout,
                                         std::uint64_t segment) {
  SegmentHead head;
  QUERN_RETURN_IF_ERROR(status_of(read_segment_head(prefix, layout, segment, head)));
  return head.chunks_at();
}

void parse_segment(std::span<const std::uint8_t> bytes, const SegmentLayout& layout, const SegmentPlace& place,
                   ParsedSegment& out) {
  out = ParsedSegment{};
  out.count = static_cast<std::size_t>(layout.segment_chunks(place.segment));
  out.status = status_of(parse_head(bytes, layout, place, out));
  if (!out.status.ok()) return;
  out.head_intact = true;
  cut_chunks(bytes, layout, place, out);
  std::uint64_t end = out.chunks_at;
  for (std::size_t k = 0; k < out.count; ++k) end += out.sizes[k];
  const bool complete = end + kSegmentChecksumBytes == bytes.size();
  if (complete) {
    const auto covered = bytes.first(bytes.size() - kSegmentChecksumBytes);
    ByteReader tail(bytes.last(kSegmentChecksumBytes));
    if (tail.u64() == bound_checksum64(place.header_checksum, place.segment, covered)) return;
  }
  out.status = check_chunks(layout, place, out);
  if (!out.status.ok()) return;
  const FormatFault what = complete                                     ? FormatFault::segment_damaged
                           : end + kSegmentChecksumBytes > bytes.size() ? FormatFault::segment_cut
                                                                        : FormatFault::segment_too_long;
  out.status = status_of({what, place.segment});
}

}  // namespace quern

// Walks header, segments and trailer by the format's own layout and overwrites every check.
#include "tests/fuzz/reseal.h"

#include <algorithm>
#include <vector>

#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/frame/trailer.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/level_table.h"
#include "libcompress/format/grid/segment.h"
#include "libcompress/format/reader.h"

namespace quern::fuzz {
namespace {

using Bytes = std::span<std::uint8_t>;

void put(Bytes at, std::uint64_t value) {
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

/// Recomputes the checks of one chunk's beginnings; false when the level table does not tell of it.
bool reseal_beginnings(Bytes chunk, Bytes table, Reader& reader) {
  const auto count = reader.varint(kMaxLevelCuts);
  if (!count.ok()) return false;
  std::vector<std::uint64_t> ends;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto more = reader.varint(chunk.size());
    if (!more.ok()) return false;
    ends.push_back(std::min<std::uint64_t>((i > 0 ? ends.back() : 0) + *more, chunk.size()));
  }
  if (ends.empty()) ends.push_back(chunk.size());
  for (const std::uint64_t end : ends) {
    const std::size_t at = reader.position();
    if (!reader.skip(4).ok()) return false;
    put(table.subspan(at, 4), level_check(chunk.first(static_cast<std::size_t>(end))));
  }
  return true;
}

/// Recomputes the checks of the chunks, the head and the whole of one segment.
void reseal_segment(Bytes bytes, const SegmentLayout& layout, const SegmentPlace& place) {
  const std::size_t count = static_cast<std::size_t>(layout.segment_chunks(place.segment));
  const std::size_t entry = table_entry_bytes(layout);
  SegmentHead head;
  if (!read_segment_head(bytes, layout, place.segment, head).ok()) return;
  if (head.chunks_at() + kSegmentChecksumBytes > bytes.size()) return;
  const auto table_at = static_cast<std::size_t>(head.table_at);
  const auto head_check_at = static_cast<std::size_t>(head.check_at);
  const Bytes level_table =
      bytes.subspan(static_cast<std::size_t>(head.level_table_at), static_cast<std::size_t>(head.level_table_bytes));
  Reader levels(level_table);
  bool has_levels = !level_table.empty();

  std::size_t chunk_at = head_check_at + 4;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t at = table_at + k * entry;
    Reader in(bytes.subspan(at, entry));
    const auto stored = in.unsigned_of(entry - 2);
    const bool is_raw = *stored == (entry == 4 ? 0xFFFF : 0xFFFFFFFF);
    const std::uint64_t size =
        is_raw ? layout.chunk_box(place.segment, k).elems() * dtype_bytes(layout.dtype()) : *stored;
    if (size > bytes.size() - 8 - chunk_at) break;
    put(bytes.subspan(at + entry - 2, 2), chunk_check(bytes.subspan(chunk_at, static_cast<std::size_t>(size))));
    if (has_levels && size > 0)
      has_levels = reseal_beginnings(bytes.subspan(chunk_at, static_cast<std::size_t>(size)), level_table, levels);
    chunk_at += static_cast<std::size_t>(size);
  }
  put(bytes.subspan(head_check_at, 4),
      bound_checksum64(place.header_checksum, place.segment, bytes.first(head_check_at)));
  put(bytes.last(8), bound_checksum64(place.header_checksum, place.segment, bytes.first(bytes.size() - 8)));
}

}  // namespace

Vector<std::uint8_t> reseal(std::span<const std::uint8_t> stream) {
  Vector<std::uint8_t> out(stream.begin(), stream.end());
  Bytes bytes(out);
  const auto header_bytes = header_size(stream.first(std::min(stream.size(), kHeaderPrefixBytes)));
  if (!header_bytes.ok() || *header_bytes > bytes.size()) return out;
  const auto header_part = bytes.first(static_cast<std::size_t>(*header_bytes));
  put(header_part.last(8), checksum64(header_part.first(header_part.size() - 8)));
  const auto header = parse_header(header_part);
  if (!header.ok() || header->shape.elems() == 0) return out;

  const SegmentLayout layout(header->grid, header->dtype, header->has_level_tables());
  TrailerBuilder trailer;
  std::size_t at = header_part.size();
  for (std::uint64_t segment = 0; segment < layout.segments(); ++segment) {
    const auto size = read_segment_size(bytes.subspan(at), layout, segment);
    if (!size.ok() || *size > bytes.size() - at) return out;
    reseal_segment(bytes.subspan(at, static_cast<std::size_t>(*size)), layout, {header->checksum, segment});
    trailer.add(*size);
    at += static_cast<std::size_t>(*size);
  }
  const auto end = trailer.finish(header->checksum, at);
  out.resize(at);
  out.insert(out.end(), end.begin(), end.end());
  return out;
}

}  // namespace quern::fuzz

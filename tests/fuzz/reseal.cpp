// Walks header, segments and trailer by the format's own layout and overwrites every check.
#include "tests/fuzz/reseal.h"

#include <algorithm>

#include "libcompress/format/checksum.h"
#include "libcompress/format/header.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/segment.h"
#include "libcompress/format/trailer.h"

namespace quern::fuzz {
namespace {

using Bytes = std::span<std::uint8_t>;

void put(Bytes at, std::uint64_t value) {
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

/// Recomputes the checks of the chunks, the head and the whole of one segment.
void reseal_segment(Bytes bytes, const SegmentLayout& layout, const SegmentPlace& place) {
  const std::size_t count = static_cast<std::size_t>(layout.segment_chunks(place.segment));
  // What framing adds without mask: size, one byte of mask size, the table, head check (4) and checksum (8).
  const std::size_t table =
      static_cast<std::size_t>(segment_framing_bytes(layout, count) - segment_framing_bytes(layout, 0));
  const std::size_t entry = table / count;
  Reader head(bytes);
  if (!head.skip(segment_size_width(layout)).ok()) return;
  const auto mask = head.varint(bytes.size());
  if (!mask.ok()) return;
  const std::size_t table_at = head.position();
  if (!head.skip(table).ok() || !head.skip(*mask).ok() || !head.skip(12).ok()) return;
  const std::size_t head_check_at = head.position() - 12;

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

  const SegmentLayout layout(header->grid, header->dtype);
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

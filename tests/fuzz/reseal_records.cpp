// Walks header, segments and trailer by the format's own layout and overwrites every check.
#include "tests/fuzz/reseal_records.h"

#include <algorithm>

#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/frame/header_bytes.h"
#include "libcompress/format/frame/trailer.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/records/record_header.h"
#include "libcompress/format/records/record_segment.h"

namespace quern::fuzz {
namespace {

using Bytes = std::span<std::uint8_t>;

void put(Bytes at, std::uint64_t value) {
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::uint64_t get(Bytes at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < at.size(); ++i) value |= static_cast<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

void reseal_segment(Bytes bytes, const RecordLayout& layout, const RecordPlace& place) {
  const std::uint64_t head = record_head_bytes(layout, place.segment);
  if (head + kRecordChecksumBytes > bytes.size()) return;
  std::size_t entry = kRecordSizeBytes;
  std::uint64_t at = head;
  for (std::size_t i = 0; i < layout.sections.size(); ++i) {
    if (!layout.has_part(i, place.segment)) continue;
    std::uint64_t size = record_part_bytes(layout, i, place.segment);
    if (layout.sections[i].form == SectionForm::bytes) {
      size = get(bytes.subspan(entry, 4));
      entry += 4;
    }
    const std::uint64_t stored = get(bytes.subspan(entry, 4));
    if (stored != kRawPart) size = stored;
    if (size > bytes.size() - kRecordChecksumBytes - at) break;
    put(bytes.subspan(entry + 4, 4),
        checksum64(bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size))));
    entry += 8;
    at += size;
  }
  const auto covered = static_cast<std::size_t>(head) - kRecordHeadCheckBytes;
  put(bytes.subspan(covered, kRecordHeadCheckBytes),
      bound_checksum64(place.header_checksum, place.segment, bytes.first(covered)));
  put(bytes.last(8), bound_checksum64(place.header_checksum, place.segment, bytes.first(bytes.size() - 8)));
}

}  // namespace

Vector<std::uint8_t> reseal_records(std::span<const std::uint8_t> stream) {
  Vector<std::uint8_t> out(stream.begin(), stream.end());
  Bytes bytes(out);
  const auto header_bytes = header_size(stream.first(std::min(stream.size(), kHeaderPrefixBytes)));
  if (!header_bytes.ok() || *header_bytes > bytes.size()) return out;
  const auto header_part = bytes.first(static_cast<std::size_t>(*header_bytes));
  put(header_part.last(8), checksum64(header_part.first(header_part.size() - 8)));
  const auto header = parse_record_header(header_part);
  if (!header.ok()) return out;
  TrailerBuilder trailer;
  std::size_t at = header_part.size();
  for (std::uint64_t segment = 0; segment < header->layout.segments(); ++segment) {
    if (bytes.size() - at < kRecordSizeBytes) return out;
    const std::uint64_t size = get(bytes.subspan(at, kRecordSizeBytes));
    if (size < kRecordSizeBytes || size > bytes.size() - at) return out;
    reseal_segment(bytes.subspan(at, static_cast<std::size_t>(size)), header->layout, {header->checksum, segment});
    trailer.add(size);
    at += static_cast<std::size_t>(size);
  }
  const auto end = trailer.finish(header->checksum, at);
  if (end.size() == bytes.size() - at)
    std::copy(end.begin(), end.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  return out;
}

}  // namespace quern::fuzz

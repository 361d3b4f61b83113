// Segments of records as bytes.
#include "libcompress/format/records/record_segment.h"

#include "libcompress/format/fault.h"
#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/records/limits.h"
#include "libcompress/format/writer.h"

namespace quern {
namespace {

constexpr std::size_t kCheckBytes = 4;
constexpr std::size_t kWidth = 4;  // of sizes in the table

bool is_string(const RecordLayout& layout, std::size_t section) {
  return layout.sections[section].form == SectionForm::bytes;
}

std::uint32_t low32(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }

/// Reads the entry of a section that has a part in the segment.
void read_entry(ByteReader& in, const RecordLayout& layout, std::uint64_t segment, PartEntry& entry) {
  entry.part_bytes = record_part_bytes(layout, entry.section, segment);
  if (is_string(layout, entry.section)) {
    const std::uint64_t most = entry.part_bytes;
    entry.part_bytes = in.u32();
    in.require(entry.part_bytes <= most, FormatFault::section_size_impossible, segment, entry.section);
  }
  const std::uint32_t stored = in.u32();
  entry.check = in.u32();
  entry.is_raw = stored == kRawPart;
  entry.stored_bytes = entry.is_raw ? entry.part_bytes : stored;
  in.require(entry.is_raw || (stored > 0 && stored < entry.part_bytes), FormatFault::section_size_impossible, segment,
             entry.section);
}

}  // namespace

std::uint64_t record_part_bytes(const RecordLayout& layout, std::size_t section, std::uint64_t segment) {
  if (is_string(layout, section)) return kMaxStringBytes;
  return layout.part_items(section, segment) * layout.sections[section].item_bytes();
}

std::uint64_t record_head_bytes(const RecordLayout& layout, std::uint64_t segment) {
  std::uint64_t bytes = kRecordSizeBytes + kRecordHeadCheckBytes;
  for (std::size_t i = 0; i < layout.sections.size(); ++i)
    if (layout.has_part(i, segment)) bytes += kWidth + kCheckBytes + (is_string(layout, i) ? kWidth : 0);
  return bytes;
}

void assemble_record_segment(const RecordLayout& layout, const RecordPlace& place, std::span<const PartPiece> pieces,
                             Vector<std::uint8_t>& out) {
  std::uint64_t size = record_head_bytes(layout, place.segment) + kRecordChecksumBytes;
  for (const PartPiece& piece : pieces) size += piece.bytes.size();
  out.clear();
  out.reserve(static_cast<std::size_t>(size));
  Writer w(out);
  w.u64(size);
  std::size_t next = 0;
  for (std::size_t i = 0; i < layout.sections.size(); ++i) {
    if (!layout.has_part(i, place.segment)) continue;
    const PartPiece& piece = pieces[next++];
    if (is_string(layout, i)) w.u32(static_cast<std::uint32_t>(piece.part_bytes));
    w.u32(piece.is_raw ? kRawPart : static_cast<std::uint32_t>(piece.bytes.size()));
    w.u32(low32(checksum64(piece.bytes)));
  }
  w.u32(low32(bound_checksum64(place.header_checksum, place.segment, out)));
  for (const PartPiece& piece : pieces) w.bytes(piece.bytes);
  w.u64(bound_checksum64(place.header_checksum, place.segment, out));
}

Result<RecordSegmentHead> parse_record_head(std::span<const std::uint8_t> bytes, const RecordLayout& layout,
                                            const RecordPlace& place) {
  const std::uint64_t head_bytes = record_head_bytes(layout, place.segment);
  if (bytes.size() < head_bytes) return status_of({FormatFault::segment_head_cut, place.segment});
  const auto covered = bytes.first(static_cast<std::size_t>(head_bytes) - kRecordHeadCheckBytes);
  ByteReader check(bytes.subspan(covered.size(), kRecordHeadCheckBytes));
  if (check.u32() != low32(bound_checksum64(place.header_checksum, place.segment, covered)))
    return status_of({FormatFault::segment_head_damaged, place.segment});
  ByteReader in(covered);
  RecordSegmentHead head;
  head.segment_bytes = in.u64();
  std::uint64_t at = head_bytes;
  for (std::size_t i = 0; i < layout.sections.size() && in.ok(); ++i) {
    if (!layout.has_part(i, place.segment)) continue;
    PartEntry& entry = head.parts.emplace_back();
    entry.section = i;
    entry.at = at;
    read_entry(in, layout, place.segment, entry);
    at += entry.stored_bytes;
  }
  // Parts have at most 2^31 bytes each, and there are at most 1024.
  in.require(head.segment_bytes == at + kRecordChecksumBytes, FormatFault::segment_size_impossible, place.segment,
             head.segment_bytes);
  QUERN_RETURN_IF_ERROR(status_of(in.fault()));
  return head;
}

Status check_part(const PartEntry& entry, std::uint64_t segment, std::span<const std::uint8_t> stored) {
  if (stored.size() != entry.stored_bytes) return status_of({FormatFault::section_cut, segment, entry.section});
  if (low32(checksum64(stored)) != entry.check)
    return status_of({FormatFault::section_damaged, segment, entry.section});
  return {};
}

Status check_record_segment(std::span<const std::uint8_t> bytes, const RecordPlace& place) {
  if (bytes.size() < kRecordSizeBytes + kRecordChecksumBytes)
    return status_of({FormatFault::segment_cut, place.segment});
  ByteReader tail(bytes.last(kRecordChecksumBytes));
  const auto covered = bytes.first(bytes.size() - kRecordChecksumBytes);
  if (tail.u64() != bound_checksum64(place.header_checksum, place.segment, covered))
    return status_of({FormatFault::segment_damaged, place.segment});
  return {};
}

}  // namespace quern

// Headers of records: limits, writing, reading.
#include "libcompress/format/records/record_header.h"

#include <algorithm>

#include <quern/shape.h>

#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/frame/metadata.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/records/limits.h"
#include "libcompress/format/writer.h"

namespace quern {
namespace {

/// Bytes of a UTF-8 character that begins with this byte; 0 where none does.
std::size_t character_bytes(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

/// Whether a character is in its shortest form, no surrogate, no control character and not above U+10FFFF.
bool is_printable(std::span<const std::uint8_t> character) {
  if (character.size() == 1) return character[0] >= 0x20 && character[0] != 0x7F;
  for (std::size_t i = 1; i < character.size(); ++i)
    if (character[i] < 0x80 || character[i] > 0xBF) return false;
  switch (character[0]) {
    case 0xC2: return character[1] >= 0xA0;  // U+0080 to U+009F are control characters
    case 0xE0: return character[1] >= 0xA0;
    case 0xED: return character[1] < 0xA0;
    case 0xF0: return character[1] >= 0x90;
    case 0xF4: return character[1] < 0x90;
    default: return true;
  }
}

bool is_section_name(std::span<const std::uint8_t> name) {
  if (name.empty() || name.size() > kMaxSectionNameBytes) return false;
  while (!name.empty()) {
    const std::size_t count = character_bytes(name.front());
    if (count == 0 || count > name.size() || !is_printable(name.first(count))) return false;
    name = name.subspan(count);
  }
  return true;
}

std::span<const std::uint8_t> bytes_of(const String& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// What is wrong with the sizes of a section of values.
FormatFault fault_in_sizes(const RecordSection& section, const RecordLayout& layout) {
  if (section.items > layout.items) return FormatFault::section_items_impossible;
  if (section.item_elems == 0) return FormatFault::section_elements_impossible;
  const auto item = checked_multiply(section.item_elems, dtype_bytes(section.dtype));
  if (!item) return FormatFault::section_too_large;
  const auto part = checked_multiply(std::min(section.items, layout.segment_items), *item);
  const auto all = checked_multiply(section.items, *item);
  const bool fits = part && *part <= kMaxPartBytes && all && *all <= kMaxElems * sizeof(std::uint64_t);
  return fits ? FormatFault::none : FormatFault::section_too_large;
}

Fault fault_in_section(const RecordLayout& layout, std::size_t index) {
  const RecordSection& section = layout.sections[index];
  if (!is_section_name(bytes_of(section.name))) return {FormatFault::section_name_impossible, index};
  if (section.form == SectionForm::bytes) return {};
  const FormatFault what = fault_in_sizes(section, layout);
  const bool of_items = what == FormatFault::section_items_impossible;
  return {what, index, of_items ? section.items : section.item_elems};
}

/// Whether two sections have one name; the second of them in `at`.
bool has_a_name_twice(const Vector<RecordSection>& sections, std::size_t& at) {
  Vector<std::size_t> order(sections.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int compared = sections[a].name.compare(sections[b].name);
    return compared != 0 ? compared < 0 : a < b;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    at = order[i];
    if (sections[order[i]].name == sections[order[i - 1]].name) return true;
  }
  return false;
}

void put_section(Writer& out, const RecordSection& section) {
  out.u8(static_cast<std::uint8_t>(section.form));
  out.varint(section.name.size());
  out.bytes(bytes_of(section.name));
  out.varint(section.tag);
  if (section.form == SectionForm::bytes) return;
  out.u8(static_cast<std::uint8_t>(section.dtype));
  out.varint(section.items);
  out.varint(section.item_elems);
  detail::put_bound(out, section);
}

/// Bounds that are worked out from a single section's values.
bool is_record_bound(BoundKind kind) { return kind != BoundKind::psnr && kind != BoundKind::ratio; }

void read_section(ByteReader& in, std::size_t index, RecordSection& section) {
  const std::uint8_t form = in.u8();
  if (!in.require(form == 1 || form == 2, FormatFault::section_form_unknown, index, form)) return;
  section.form = static_cast<SectionForm>(form);
  const auto name = in.bytes(in.varint(kMaxSectionNameBytes));
  section.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  section.tag = static_cast<std::uint16_t>(in.varint(UINT16_MAX));
  if (section.form == SectionForm::bytes || !in.ok()) return;
  const std::uint8_t dtype = in.u8();
  if (!in.require(is_known_dtype(dtype), FormatFault::unknown_dtype, dtype)) return;
  section.dtype = static_cast<DType>(dtype);
  section.items = in.varint(kMaxElems);
  section.item_elems = in.varint(kMaxElems);
  detail::read_bound(in, section);
  in.require(is_record_bound(section.requested.kind), FormatFault::requested_bound_impossible);
}

/// Lists grow as their bytes are read: what is allocated stays in proportion to the header.
void read_fields(ByteReader& in, RecordHeader& header, std::span<const std::uint8_t>& params, MetadataView& metadata) {
  detail::read_stream_start(in, header);
  in.require((header.must_understand & kRecords) != 0, FormatFault::holds_an_array);
  in.require(
      (header.must_understand & (kLevelTables | kMaskViews | kMaskLevels | kReferences | kParts | kCodecFeatures)) == 0,
      FormatFault::unknown_features, header.must_understand);
  header.writer = detail::read_writer(in);
  RecordLayout& layout = header.layout;
  layout.items = in.varint(kMaxElems);
  layout.segment_items = in.varint(kMaxSegmentItems);
  const std::uint64_t frames = in.varint(kMaxFrames);
  for (std::uint64_t i = 0; i < frames && in.ok(); ++i) layout.frames.push_back(in.varint(kMaxElems));
  header.codec_id = static_cast<std::uint16_t>(in.varint(UINT16_MAX));
  header.codec_version = static_cast<std::uint16_t>(in.varint(UINT16_MAX));
  const std::uint64_t sections = in.varint();
  in.require(sections >= 1 && sections <= kMaxSections, FormatFault::section_count_impossible, sections, kMaxSections);
  for (std::size_t i = 0; i < sections && in.ok(); ++i) read_section(in, i, layout.sections.emplace_back());
  params = in.bytes(in.varint(kMaxParamsBytes));
  detail::read_metadata(in, metadata);
  in.expect_end();
}

}  // namespace

Fault fault_in_layout(const RecordLayout& layout) {
  if (layout.items > kMaxElems) return {FormatFault::number_above_limit, layout.items, kMaxElems};
  if (layout.segment_items == 0 || layout.segment_items > kMaxSegmentItems)
    return {FormatFault::segment_items_impossible, layout.segment_items};
  if (layout.sections.empty() || layout.sections.size() > kMaxSections)
    return {FormatFault::section_count_impossible, layout.sections.size(), kMaxSections};
  std::uint64_t in_frames = 0;
  for (const std::uint64_t items : layout.frames) {
    if (items > layout.items - in_frames) return {FormatFault::frames_do_not_add_up};
    in_frames += items;
  }
  if (layout.frames.size() > kMaxFrames || (!layout.frames.empty() && in_frames != layout.items))
    return {FormatFault::frames_do_not_add_up};
  for (std::size_t i = 0; i < layout.sections.size(); ++i)
    if (const Fault fault = fault_in_section(layout, i); !fault.ok()) return fault;
  std::size_t twice = 0;
  if (has_a_name_twice(layout.sections, twice)) return {FormatFault::section_name_twice, twice};
  return {};
}

Result<Vector<std::uint8_t>> serialize_record_header(RecordHeader& header) {
  if (header.params.size() > kMaxParamsBytes)
    return Status(StatusCode::internal, "the codec wants {0} bytes of parameters; {1} is the limit",
                  static_cast<std::int64_t>(header.params.size()), static_cast<std::int64_t>(kMaxParamsBytes));
  if (header.metadata.size() > kMaxMetadataBytes)
    return Status(StatusCode::invalid_argument, "the metadata has {0} bytes; {1} is the limit",
                  static_cast<std::int64_t>(header.metadata.size()), static_cast<std::int64_t>(kMaxMetadataBytes));
  header.must_understand = kRecords;
  Vector<std::uint8_t> fields;
  Writer out(fields);
  detail::put_stream_start(out, header);
  detail::put_writer(out, header.writer);
  out.varint(header.layout.items);
  out.varint(header.layout.segment_items);
  out.varint(header.layout.frames.size());
  for (const std::uint64_t items : header.layout.frames) out.varint(items);
  out.varint(header.codec_id);
  out.varint(header.codec_version);
  out.varint(header.layout.sections.size());
  for (const RecordSection& section : header.layout.sections) put_section(out, section);
  out.varint(header.params.size());
  out.bytes(header.params);
  Vector<std::uint8_t> room;
  detail::put_metadata(out, pack_metadata(header.metadata, room));
  const std::uint64_t size = kHeaderPrefixBytes + fields.size() + kHeaderChecksumBytes;
  if (size > kMaxHeaderBytes)
    return Status(StatusCode::invalid_argument, "the header would have {0} bytes; {1} is the limit",
                  static_cast<std::int64_t>(size), static_cast<std::int64_t>(kMaxHeaderBytes));
  Vector<std::uint8_t> bytes;
  Writer whole(bytes);
  whole.u64(detail::kMagic);
  whole.u32(static_cast<std::uint32_t>(size));
  whole.bytes(fields);
  header.checksum = checksum64(bytes);
  whole.u64(header.checksum);
  return bytes;
}

Result<RecordHeader> parse_record_header(std::span<const std::uint8_t> bytes) {
  std::span<const std::uint8_t> body;
  RecordHeader header;
  QUERN_RETURN_IF_ERROR(status_of(open_header(bytes, body, header.checksum)));
  ByteReader in(body);
  in.skip(kHeaderPrefixBytes);
  std::span<const std::uint8_t> params;
  MetadataView metadata;
  read_fields(in, header, params, metadata);
  QUERN_RETURN_IF_ERROR(status_of(detail::fault_in_fields(in)));
  QUERN_RETURN_IF_ERROR(status_of(fault_in_layout(header.layout)));
  header.params.assign(params.begin(), params.end());
  QUERN_ASSIGN_OR_RETURN(header.metadata, unpack_metadata(metadata));
  return header;
}

}  // namespace quern

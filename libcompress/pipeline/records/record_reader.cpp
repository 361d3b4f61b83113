// Opening streams of records, items of one section, strings of bytes.
#include "libcompress/pipeline/records/record_reader.h"

#include <algorithm>
#include <new>

#include "libcompress/core/run_tasks.h"
#include "libcompress/format/frame/header_bytes.h"

namespace quern {
namespace {

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

Status out_of_memory() { return Status(StatusCode::out_of_memory, "out of memory"); }

}  // namespace

RecordInfo describe_records(const RecordHeader& header, std::uint64_t header_bytes, const RecordRegistry& registry) {
  RecordInfo info;
  info.layout = header.layout;
  info.format_major = header.major;
  info.format_minor = header.minor;
  info.codec_id = header.codec_id;
  info.codec_version = header.codec_version;
  const RecordCodec* codec = registry.by_id(header.codec_id);
  info.codec_name = header.codec_id == kStoredCodecId ? "stored" : codec != nullptr ? codec->info().name : "unknown";
  info.metadata = header.metadata;
  info.header_bytes = header_bytes;
  return info;
}

Status StreamRecordReader::open_codec(const RecordRegistry& registry) {
  if (header_.codec_id == kStoredCodecId) {
    if (header_.codec_version == 1 && header_.params.empty()) return {};
    return Status(StatusCode::corrupt, "the header gives parameters or another version to stored records");
  }
  const RecordCodec* codec = registry.by_id(header_.codec_id);
  if (codec == nullptr) {
    no_codec_ = Status(StatusCode::unknown_codec,
                       "the records are coded by codec {0} (version {1}), which this build does not have",
                       header_.codec_id, header_.codec_version);
    return {};
  }
  QUERN_ASSIGN_OR_RETURN(codec_, codec->open({&info_.layout, header_.codec_version, header_.params}));
  return {};
}

Status StreamRecordReader::start(const RecordRegistry& registry) {
  if (!source_.can_seek())
    return Status(StatusCode::unsupported, "records are read from a source that can seek; this one cannot");
  QUERN_RETURN_IF_ERROR(source_.seek(start_));
  QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> bytes, read_header_bytes(source_));
  QUERN_ASSIGN_OR_RETURN(header_, parse_record_header(bytes));
  info_ = describe_records(header_, bytes.size(), registry);
  QUERN_RETURN_IF_ERROR(open_codec(registry));
  std::uint64_t fetched = 0;
  return load_stream_index(source_, {start_, bytes.size(), header_.checksum, header_.layout.segments()}, memory_limit_,
                           index_, fetched);
}

Status StreamRecordReader::need_memory(std::uint64_t bytes) const {
  if (bytes <= memory_limit_) return {};
  return Status(StatusCode::memory_limit, "{0} bytes are needed at least; the limit is {1}", number(bytes),
                number(memory_limit_));
}

Status StreamRecordReader::fetch(std::uint64_t at, std::span<std::uint8_t> out) {
  QUERN_RETURN_IF_ERROR(source_.seek(start_ + at));
  QUERN_ASSIGN_OR_RETURN(const std::size_t have, read_up_to(source_, out));
  if (have == out.size()) return {};
  return Status(StatusCode::truncated, "the stream ends {0} bytes too early", number(out.size() - have));
}

Result<RecordSegmentHead> StreamRecordReader::read_head(std::uint64_t segment) {
  const std::uint64_t at = index_.offsets[segment];
  const std::uint64_t size = index_.offsets[segment + 1] - at;
  const std::uint64_t head_bytes = record_head_bytes(header_.layout, segment);
  if (size < head_bytes + kRecordChecksumBytes)
    return Status(StatusCode::corrupt, "segment {0}: its size, {1} bytes, is impossible", number(segment),
                  number(size));
  Vector<std::uint8_t> bytes(static_cast<std::size_t>(head_bytes));
  QUERN_RETURN_IF_ERROR(fetch(at, bytes));
  QUERN_ASSIGN_OR_RETURN(RecordSegmentHead head, parse_record_head(bytes, header_.layout, {header_.checksum, segment}));
  if (head.segment_bytes != size)
    return Status(StatusCode::corrupt, "segment {0}: its size is not that of the trailer", number(segment));
  for (const PartEntry& entry : head.parts)
    if (header_.codec_id == kStoredCodecId && !entry.is_raw)
      return Status(StatusCode::corrupt, "segment {0}, section {1} is coded, but the header names no codec",
                    number(segment), number(entry.section));
  return head;
}

SectionPart StreamRecordReader::part_of(const PartEntry& entry, std::uint64_t segment) const {
  const RecordSection& section = info_.layout.sections[entry.section];
  const std::uint64_t items = section.form == SectionForm::values ? info_.layout.part_items(entry.section, segment) : 0;
  return {&section, entry.section, segment, items, entry.part_bytes};
}

std::uint64_t StreamRecordReader::working_bytes(const PartEntry& entry) const {
  return codec_ != nullptr && !entry.is_raw ? codec_->working_bytes(entry.part_bytes) : 0;
}

Status StreamRecordReader::decode(const PartToDecode& task) const {
  QUERN_RETURN_IF_ERROR(check_part(task.entry, task.part.segment, task.stored));
  if (task.entry.is_raw) {
    std::copy(task.stored.begin(), task.stored.end(), task.out.begin());
    return {};
  }
  if (!no_codec_.ok()) return no_codec_;
  return codec_->decode(task.part, task.stored, task.out);
}

/// What a section has in one of the segments that are asked for.
struct StreamRecordReader::ItemPart {
  std::uint64_t segment = 0;
  PartEntry entry;
  Vector<std::uint8_t> stored;
};

// Finds the section's part in the segment's head and reads it.
Status StreamRecordReader::read_item_part(ItemPart& part) {
  QUERN_ASSIGN_OR_RETURN(const RecordSegmentHead head, read_head(part.segment));
  const std::size_t section = part.entry.section;
  for (const PartEntry& entry : head.parts)
    if (entry.section == section) part.entry = entry;
  // Bytes of the part in the stream, decoded, and while that is done.
  QUERN_RETURN_IF_ERROR(need_memory(part.entry.stored_bytes + part.entry.part_bytes + working_bytes(part.entry)));
  part.stored.resize(static_cast<std::size_t>(part.entry.stored_bytes));
  return fetch(index_.offsets[part.segment] + part.entry.at, part.stored);
}

// Reads a section's parts from segment `first` on until threads have enough to do or memory is used up.
Status StreamRecordReader::read_item_parts(std::size_t section, std::uint64_t first, std::uint64_t last,
                                           Vector<ItemPart>& parts) {
  parts.clear();
  std::uint64_t held = 0;
  for (std::uint64_t segment = first; segment <= last && parts.size() < 4 * runner_.get().width(); ++segment) {
    ItemPart part;
    part.segment = segment;
    part.entry.section = section;
    const Status status = read_item_part(part);
    // What is wrong with those before it is told first.
    if (!status.ok() && !parts.empty()) break;
    QUERN_RETURN_IF_ERROR(status);
    held += part.entry.stored_bytes + part.entry.part_bytes + working_bytes(part.entry);
    if (held > memory_limit_ && !parts.empty()) break;
    parts.push_back(std::move(part));
  }
  return {};
}

// Decodes a part and copies those of its items that lie in [first, end).
Status StreamRecordReader::deliver(ItemPart& part, std::uint64_t first, std::uint64_t end,
                                   std::span<std::uint8_t> out) const {
  const SectionPart what = part_of(part.entry, part.segment);
  const std::uint64_t item = what.section->item_bytes();
  const std::uint64_t begins = part.segment * info_.layout.segment_items;
  const std::uint64_t from = std::max(begins, first);
  const std::uint64_t to = std::min(begins + what.items, end);
  const auto wanted =
      out.subspan(static_cast<std::size_t>((from - first) * item), static_cast<std::size_t>((to - from) * item));
  if (wanted.size() == what.bytes) return decode({what, part.entry, part.stored, wanted});
  Vector<std::uint8_t> whole(static_cast<std::size_t>(what.bytes));
  QUERN_RETURN_IF_ERROR(decode({what, part.entry, part.stored, whole}));
  std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>((from - begins) * item), wanted.size(), wanted.begin());
  return {};
}

Status StreamRecordReader::read_items(std::size_t section, std::uint64_t first, std::uint64_t count,
                                      std::span<std::uint8_t> out) {
  const RecordLayout& layout = info_.layout;
  if (section >= layout.sections.size() || layout.sections[section].form != SectionForm::values)
    return Status(StatusCode::invalid_argument, "section {0} has no items", number(section));
  const RecordSection& what = layout.sections[section];
  if (first > what.items || count > what.items - first)
    return Status(StatusCode::invalid_argument, "section {0} has {1} items, not those asked for", number(section),
                  number(what.items));
  if (out.size() != count * what.item_bytes())
    return Status(StatusCode::invalid_argument, "{0} bytes are given for items that have {1}", number(out.size()),
                  number(count * what.item_bytes()));
  if (count == 0) return {};
  try {
    const std::uint64_t last = (first + count - 1) / layout.segment_items;
    Vector<ItemPart> parts;
    for (std::uint64_t next = first / layout.segment_items; next <= last; next += parts.size()) {
      QUERN_RETURN_IF_ERROR(read_item_parts(section, next, last, parts));
      QUERN_RETURN_IF_ERROR(run_tasks(runner_.get(), parts.size(),
                                      [&](std::size_t i) { return deliver(parts[i], first, first + count, out); }));
    }
    return {};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<Vector<std::uint8_t>> StreamRecordReader::read_string(std::size_t section, std::uint64_t segment) {
  const RecordLayout& layout = info_.layout;
  if (section >= layout.sections.size() || layout.sections[section].form != SectionForm::bytes)
    return Status(StatusCode::invalid_argument, "section {0} has no strings of bytes", number(section));
  if (segment >= layout.segments())
    return Status(StatusCode::invalid_argument, "there are {0} segments, not one of number {1}",
                  number(layout.segments()), number(segment));
  try {
    ItemPart part;
    part.segment = segment;
    part.entry.section = section;
    QUERN_RETURN_IF_ERROR(read_item_part(part));
    Vector<std::uint8_t> text(static_cast<std::size_t>(part.entry.part_bytes));
    QUERN_RETURN_IF_ERROR(decode({part_of(part.entry, segment), part.entry, part.stored, text}));
    return text;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<Vector<StoredPart>> StreamRecordReader::stored_parts(std::uint64_t segment) {
  if (segment >= info_.layout.segments())
    return Status(StatusCode::invalid_argument, "there are {0} segments, not one of number {1}",
                  number(info_.layout.segments()), number(segment));
  try {
    QUERN_ASSIGN_OR_RETURN(const RecordSegmentHead head, read_head(segment));
    Vector<StoredPart> out;
    for (const PartEntry& entry : head.parts)
      out.push_back({segment, entry.section, entry.part_bytes, entry.stored_bytes, entry.is_raw});
    return out;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<std::unique_ptr<RecordReader>> RecordReader::open(ByteSource& source, const RecordRegistry& registry,
                                                         const Execution& execution, std::uint64_t offset) {
  try {
    auto reader = std::make_unique<StreamRecordReader>(source, execution, offset);
    QUERN_RETURN_IF_ERROR(reader->start(registry));
    return std::unique_ptr<RecordReader>(std::move(reader));
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<RecordInfo> inspect_records(ByteSource& source, const RecordRegistry& registry) {
  try {
    QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> bytes, read_header_bytes(source));
    QUERN_ASSIGN_OR_RETURN(const RecordHeader header, parse_record_header(bytes));
    return describe_records(header, bytes.size(), registry);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<bool> holds_records(ByteSource& source) {
  try {
    QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> bytes, read_header_bytes(source));
    std::span<const std::uint8_t> body;
    std::uint64_t checksum = 0;
    QUERN_RETURN_IF_ERROR(status_of(open_header(bytes, body, checksum)));
    return says_records(bytes);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace quern

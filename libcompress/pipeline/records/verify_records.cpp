// Reading every byte of a stream of records: checksums, structure, and all parts that a codec of this build decodes.
#include <new>

#include "libcompress/core/run_tasks.h"
#include "libcompress/pipeline/records/record_parts.h"
#include "libcompress/pipeline/records/record_reader.h"

namespace quern {

// Decodes the parts of a segment, whose bytes are in memory, in runs that fit beside them.
Status StreamRecordReader::decode_all(const RecordSegmentHead& head, std::uint64_t segment,
                                      std::span<const std::uint8_t> bytes) {
  Vector<PartToDecode> tasks;
  Vector<std::uint64_t> needs;
  for (const PartEntry& entry : head.parts) {
    // A part whose codec is missing is held against its check alone.
    const auto stored = bytes.subspan(static_cast<std::size_t>(entry.at), static_cast<std::size_t>(entry.stored_bytes));
    tasks.push_back({part_of(entry, segment), entry, stored, {}});
    const bool decodes = entry.is_raw || no_codec_.ok();
    needs.push_back(decodes && !entry.is_raw ? entry.part_bytes + working_bytes(entry) : 0);
  }
  for (std::size_t at = 0; at < tasks.size();) {
    QUERN_ASSIGN_OR_RETURN(const std::size_t end, parts_that_fit(needs, at, memory_limit_ - bytes.size()));
    QUERN_RETURN_IF_ERROR(run_tasks(runner_.get(), end - at, [&](std::size_t i) -> Status {
      PartToDecode task = tasks[at + i];
      if (needs[at + i] == 0) return check_part(task.entry, segment, task.stored);
      Vector<std::uint8_t> room(static_cast<std::size_t>(task.entry.part_bytes));
      task.out = room;
      return decode(task);
    }));
    at = end;
  }
  return {};
}

Status StreamRecordReader::verify_segment(std::uint64_t segment, RecordCheck& check) {
  // The head first: it says how the segment's bytes are shared out, and it was held against the index.
  QUERN_ASSIGN_OR_RETURN(const RecordSegmentHead head, read_head(segment));
  QUERN_RETURN_IF_ERROR(need_memory(head.segment_bytes));
  Vector<std::uint8_t> bytes(static_cast<std::size_t>(head.segment_bytes));
  QUERN_RETURN_IF_ERROR(fetch(index_.offsets[segment], bytes));
  const Status whole = check_record_segment(bytes, {header_.checksum, segment});
  // Where the whole is damaged, the checks of the parts tell which.
  QUERN_RETURN_IF_ERROR(decode_all(head, segment, bytes));
  QUERN_RETURN_IF_ERROR(whole);
  for (const PartEntry& entry : head.parts) {
    ++check.parts;
    if (entry.is_raw) ++check.raw_parts;
    check.section_bytes[entry.section] += entry.part_bytes;
    check.section_stored_bytes[entry.section] += entry.stored_bytes;
  }
  return {};
}

Result<RecordCheck> StreamRecordReader::verify() {
  try {
    RecordCheck check;
    check.section_bytes.resize(info_.layout.sections.size());
    check.section_stored_bytes.resize(info_.layout.sections.size());
    for (std::uint64_t segment = 0; segment < info_.layout.segments(); ++segment)
      QUERN_RETURN_IF_ERROR(verify_segment(segment, check));
    check.decoded = no_codec_.ok() || check.parts == check.raw_parts;
    return check;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern

// One segment of records: size, a table of the parts that sections have in it, the parts, checks. What a part contains
// is not known here.
//
//   size u64 | table | head check u32 | parts, one after another | checksum u64
//   table, for each section that has a part in the segment, in their order:
//     of values   stored size u32 | check u32
//     of bytes    length u32 | stored size u32 | check u32
//
// The head has a size that follows from the layout alone, and a check of its own, as each part has: a part can be read
// without the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/records.h>
#include <quern/status.h>

namespace quern {

inline constexpr std::size_t kRecordSizeBytes = 8;
inline constexpr std::size_t kRecordHeadCheckBytes = 4;
inline constexpr std::size_t kRecordChecksumBytes = 8;
/// Stored size of a part that is stored as it is.
inline constexpr std::uint32_t kRawPart = 0xFFFFFFFF;

/// A part to be written.
struct PartPiece {
  bool is_raw = false;
  std::span<const std::uint8_t> bytes;  ///< stored ones, the caller's memory
  std::uint64_t part_bytes = 0;         ///< of the values or the string
};

/// A part as a segment's head tells of it.
struct PartEntry {
  std::size_t section = 0;
  bool is_raw = false;
  std::uint64_t part_bytes = 0;    ///< of the values or the string
  std::uint64_t stored_bytes = 0;  ///< below part_bytes unless raw
  std::uint64_t at = 0;            ///< from the segment's first byte
  std::uint32_t check = 0;
};

struct RecordSegmentHead {
  std::uint64_t segment_bytes = 0;
  Vector<PartEntry> parts;
};

/// What binds a segment to its stream and its place.
struct RecordPlace {
  std::uint64_t header_checksum = 0;
  std::uint64_t segment = 0;
};

/// Bytes of the values or the string that a part has at most; those of values exactly.
std::uint64_t record_part_bytes(const RecordLayout& layout, std::size_t section, std::uint64_t segment);

/// Bytes from the size to the head check.
std::uint64_t record_head_bytes(const RecordLayout& layout, std::uint64_t segment);

/// Puts a segment together in `out` (replaced): `pieces` are the parts that sections have in it, in their order. May
/// throw std::bad_alloc.
void assemble_record_segment(const RecordLayout& layout, const RecordPlace& place, std::span<const PartPiece> pieces,
                             Vector<std::uint8_t>& out);

/// Reads a head of record_head_bytes; fewer are a cut segment. Checks the head check and all sizes. Allocates in
/// proportion to `bytes`. May throw std::bad_alloc.
Result<RecordSegmentHead> parse_record_head(std::span<const std::uint8_t> bytes, const RecordLayout& layout,
                                            const RecordPlace& place);

/// Compares a part's stored bytes with its entry.
Status check_part(const PartEntry& entry, std::uint64_t segment, std::span<const std::uint8_t> stored);

/// Checks the checksum of a whole segment.
Status check_record_segment(std::span<const std::uint8_t> bytes, const RecordPlace& place);

}  // namespace quern

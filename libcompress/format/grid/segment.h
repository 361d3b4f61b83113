// One segment's bytes: size, table of chunks, mask section, level table, chunks, checksums. Assembling and taking
// apart; what the mask and the chunks contain is not known here. Where what lies is in segment_frame.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/format/grid/layout.h"
#include "libcompress/format/grid/limits.h"
#include "libcompress/format/grid/segment_frame.h"

namespace quern {

struct ChunkPiece {
  ChunkForm form = ChunkForm::coded;
  std::span<const std::uint8_t> bytes;  ///< empty when masked; the caller's memory
  std::uint16_t check = 0;              ///< chunk_check(bytes)
};

/// Low 16 bits of the chunk's XXH3-64: finds the damaged chunk in a segment whose checksum fails.
std::uint16_t chunk_check(std::span<const std::uint8_t> bytes);

/// What binds a segment to its stream and its place.
struct SegmentPlace {
  std::uint64_t header_checksum = 0;
  std::uint64_t segment = 0;
};

/// Puts a segment together in `out` (replaced). May throw std::bad_alloc.
void assemble_segment(const SegmentLayout& layout, const SegmentPlace& place, std::span<const std::uint8_t> mask,
                      std::span<const ChunkPiece> chunks, Vector<std::uint8_t>& out,
                      std::span<const std::uint8_t> level_table = {});

/// Reads the size field (segment_size_width bytes) and checks it against what the segment may have.
Result<std::uint64_t> read_segment_size(std::span<const std::uint8_t> bytes, const SegmentLayout& layout,
                                        std::uint64_t segment);

/// Bytes of everything before the chunks, head check included, from a segment's first kSegmentPrefixBytes (fewer where
/// the stream ends). parse_segment of that many bytes finds table and mask, and all chunks cut off.
Result<std::uint64_t> segment_head_bytes(std::span<const std::uint8_t> prefix, const SegmentLayout& layout,
                                         std::uint64_t segment);

struct ParsedSegment {
  /// ok, or what is wrong first; names the segment and, if the table can be trusted, the chunk by its number in the
  /// stream.
  Status status;
  /// Table, mask and level table can be trusted.
  bool head_intact = false;
  std::span<const std::uint8_t> mask;
  std::span<const std::uint8_t> level_table;
  std::size_t count = 0;
  std::array<ChunkPiece, kMaxSegmentChunks> chunks;
  std::array<std::uint64_t, kMaxSegmentChunks> sizes{};  ///< stored bytes of the chunks, also of those cut off
  std::uint64_t chunks_at = 0;                           ///< where the first of them begins in the segment
  /// By chunk: ok when its bytes can be trusted. Meaningful when head_intact.
  std::array<Status, kMaxSegmentChunks> chunk_status;
};

/// Takes a segment apart and checks it. `bytes` may be short or damaged; views point into it.
void parse_segment(std::span<const std::uint8_t> bytes, const SegmentLayout& layout, const SegmentPlace& place,
                   ParsedSegment& out);

}  // namespace quern

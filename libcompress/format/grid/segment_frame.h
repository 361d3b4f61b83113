// The frame of a segment (size | mask size | level table size | table | mask | level table | head check | chunks |
// checksum) as arithmetic, for host and device code: sizes, where the parts lie, one entry of the table. Only streams
// with level tables have those and their size. Checksums are the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libcompress/format/bytes.h"
#include "libcompress/format/fault.h"
#include "libcompress/format/grid/layout.h"
#include "libcompress/format/grid/limits.h"

namespace quern {

inline constexpr std::size_t kHeadCheckBytes = 4;
inline constexpr std::size_t kSegmentChecksumBytes = 8;
inline constexpr std::size_t kChunkCheckBytes = 2;
/// Bytes that tell how long a segment and its head are: size, mask size, level table size.
inline constexpr std::size_t kSegmentPrefixBytes = 20;

/// How a chunk is stored.
enum class ChunkForm : std::uint8_t {
  coded,   ///< by the codec
  raw,     ///< little-endian values, special values included
  masked,  ///< no bytes: every cell is in the mask
};

/// What the table says of a chunk.
struct TableEntry {
  ChunkForm form = ChunkForm::coded;
  std::uint16_t check = 0;  ///< low 16 bits of the XXH3-64 of its bytes
  std::uint64_t bytes = 0;  ///< stored ones: those of its values when raw, none when masked
};

/// Where the parts of a segment's head lie, from the segment's first byte.
struct SegmentHead {
  std::uint64_t mask_bytes = 0;
  std::uint64_t level_table_bytes = 0;
  std::uint64_t table_at = 0;
  std::uint64_t mask_at = 0;
  std::uint64_t level_table_at = 0;
  std::uint64_t check_at = 0;  ///< of what the check covers, the end

  constexpr std::uint64_t chunks_at() const { return check_at + kHeadCheckBytes; }
};

/// Bytes of the values of a box.
constexpr std::uint64_t raw_bytes(const SegmentLayout& layout, const GridBox& box) {
  return box.elems() * dtype_bytes(layout.dtype());
}

/// Width in bytes of the size field at the start of every segment: 4, or 8 when segments may pass 3.75 GiB.
constexpr std::size_t segment_size_width(const SegmentLayout& layout) {
  return layout.full_chunk_bytes() * kMaxSegmentChunks <= UINT64_C(0xF0000000) ? 4 : 8;
}
/// Width of a chunk's size in the table.
constexpr std::size_t chunk_size_width(const SegmentLayout& layout) {
  return layout.full_chunk_bytes() <= 0xFFFF ? 2 : 4;
}
/// A raw chunk is told by the largest size; a coded chunk is always smaller than its values.
constexpr std::uint64_t raw_marker(std::size_t width) { return width == 2 ? 0xFFFF : 0xFFFFFFFF; }
constexpr std::size_t table_entry_bytes(const SegmentLayout& layout) {
  return chunk_size_width(layout) + kChunkCheckBytes;
}

/// Bytes that framing adds to a segment of `chunks` chunks without a mask and with an empty level table, if any.
constexpr std::uint64_t segment_framing_bytes(const SegmentLayout& layout, std::uint64_t chunks) {
  return segment_size_width(layout) + (layout.has_level_tables() ? 2 : 1) + chunks * table_entry_bytes(layout) +
         kHeadCheckBytes + kSegmentChecksumBytes;
}
/// Bytes of a segment whose chunks take `chunk_bytes` together.
constexpr std::uint64_t segment_bytes(const SegmentLayout& layout, std::uint64_t chunks, std::uint64_t mask_bytes,
                                      std::uint64_t chunk_bytes, std::uint64_t level_table_bytes = 0) {
  return segment_framing_bytes(layout, chunks) - 1 + varint_bytes(mask_bytes) + mask_bytes + chunk_bytes +
         varint_bytes(level_table_bytes) - 1 + level_table_bytes;
}
/// Bytes that the size of the largest level table takes beyond that of an empty one.
constexpr std::uint64_t level_size_room(const SegmentLayout& layout) {
  return layout.has_level_tables() ? varint_bytes(kMaxLevelTableBytes) - 1 : 0;
}
/// Upper limit of a segment's bytes: mask, level table and chunks together are never larger than the values.
constexpr std::uint64_t max_segment_bytes(const SegmentLayout& layout, std::uint64_t segment) {
  const std::uint64_t raw = raw_bytes(layout, layout.segment_box(segment));
  return segment_framing_bytes(layout, layout.segment_chunks(segment)) + varint_bytes(raw) - 1 +
         level_size_room(layout) + raw;
}

/// What stands before the table. W is Writer or ByteWriter.
template <class W>
constexpr void put_segment_start(W& out, const SegmentLayout& layout, std::uint64_t size, std::uint64_t mask_bytes,
                                 std::uint64_t level_table_bytes = 0) {
  out.unsigned_of(size, segment_size_width(layout));
  out.varint(mask_bytes);
  if (layout.has_level_tables()) out.varint(level_table_bytes);
}
template <class W>
constexpr void put_table_entry(W& out, const SegmentLayout& layout, const TableEntry& entry) {
  const std::size_t width = chunk_size_width(layout);
  out.unsigned_of(entry.form == ChunkForm::raw ? raw_marker(width) : entry.bytes, width);
  out.u16(entry.check);
}

/// Reads the size field and checks it against what the segment may have.
constexpr Fault read_segment_size(std::span<const std::uint8_t> bytes, const SegmentLayout& layout,
                                  std::uint64_t segment, std::uint64_t& size) {
  ByteReader in(bytes);
  size = in.unsigned_of(segment_size_width(layout));
  if (in.ok())
    in.require(size >= segment_framing_bytes(layout, layout.segment_chunks(segment)) &&
                   size <= max_segment_bytes(layout, segment),
               FormatFault::segment_size_impossible, segment, size);
  return in.fault();
}

/// Finds the parts of the head; a segment's first kSegmentPrefixBytes are enough.
constexpr Fault read_segment_head(std::span<const std::uint8_t> bytes, const SegmentLayout& layout,
                                  std::uint64_t segment, SegmentHead& head) {
  ByteReader in(bytes);
  in.skip(segment_size_width(layout));
  head.mask_bytes = in.varint(raw_bytes(layout, layout.segment_box(segment)));
  if (layout.has_level_tables()) head.level_table_bytes = in.varint(kMaxLevelTableBytes);
  head.table_at = in.position();
  head.mask_at = head.table_at + layout.segment_chunks(segment) * table_entry_bytes(layout);
  head.level_table_at = head.mask_at + head.mask_bytes;
  head.check_at = head.level_table_at + head.level_table_bytes;
  return in.fault();
}

/// Reads the entry of the `k`-th chunk of a segment from the table, which is there in full.
constexpr Fault read_table_entry(std::span<const std::uint8_t> table, const SegmentLayout& layout,
                                 std::uint64_t segment, std::uint64_t k, TableEntry& entry) {
  const std::size_t width = chunk_size_width(layout);
  ByteReader in(table);
  in.skip(k * table_entry_bytes(layout));
  const std::uint64_t size = in.unsigned_of(width);
  entry.check = in.u16();
  const std::uint64_t raw = raw_bytes(layout, layout.chunk_box(segment, k));
  if (size == raw_marker(width)) {
    entry.form = ChunkForm::raw;
    entry.bytes = raw;
  } else {
    entry.form = size == 0 ? ChunkForm::masked : ChunkForm::coded;
    entry.bytes = size;
    in.require(size < raw, FormatFault::chunk_size_impossible, segment, layout.first_chunk(segment) + k);
  }
  return in.fault();
}

}  // namespace quern

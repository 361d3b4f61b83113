// The arithmetic of a segment's bytes (docs/format.md, chapter 5): widths, offsets, table entries. No allocation and no
// Status, so that host and device code use it alike.
#pragma once

#include <cstddef>
#include <cstdint>

#include <quern/dtype.h>

#include "kernels/core/tile_code.h"
#include "libcompress/format/layout.h"
#include "libcompress/format/limits.h"
#include "libcompress/format/writer.h"

namespace quern {

/// How a chunk is stored.
enum class ChunkForm : std::uint8_t {
  coded,   ///< by the codec
  raw,     ///< little-endian values, special values included
  masked,  ///< no bytes: every cell is in the mask
};

inline constexpr std::size_t kSegmentHeadCheckBytes = 4;
inline constexpr std::size_t kSegmentChecksumBytes = 8;
inline constexpr std::size_t kChunkCheckBytes = 2;

/// The lowest `width` bytes of a number, lowest first.
constexpr void put_little_endian(std::uint8_t* out, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
}
constexpr std::uint64_t get_little_endian(const std::uint8_t* in, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) value |= static_cast<std::uint64_t>(in[i]) << (8 * i);
  return value;
}

/// A raw chunk is told by the largest size; a coded chunk is always smaller than its values.
constexpr std::size_t chunk_size_width(const SegmentLayout& layout) {
  return layout.full_chunk_bytes() <= 0xFFFF ? 2 : 4;
}
constexpr std::uint64_t raw_marker(std::size_t width) { return width == 2 ? 0xFFFF : 0xFFFFFFFF; }

/// Width in bytes of the size field at the start of every segment: 4, or 8 when segments may pass 3.75 GiB.
constexpr std::size_t segment_size_width(const SegmentLayout& layout) {
  return layout.full_chunk_bytes() * kMaxSegmentChunks <= UINT64_C(0xF0000000) ? 4 : 8;
}

constexpr std::uint64_t raw_bytes(const SegmentLayout& layout, const GridBox& box) {
  return box.elems() * dtype_bytes(layout.dtype());
}

/// Bytes of a chunk's entry in the table.
constexpr std::size_t segment_entry_bytes(const SegmentLayout& layout) {
  return chunk_size_width(layout) + kChunkCheckBytes;
}
/// Where the table begins, and where the first chunk does, in a segment whose mask has that many bytes.
constexpr std::uint64_t segment_table_offset(const SegmentLayout& layout, std::uint64_t mask_bytes) {
  return segment_size_width(layout) + varint_bytes(mask_bytes);
}
constexpr std::uint64_t segment_body_offset(const SegmentLayout& layout, std::uint64_t chunks,
                                            std::uint64_t mask_bytes) {
  return segment_table_offset(layout, mask_bytes) + chunks * segment_entry_bytes(layout) + mask_bytes +
         kSegmentHeadCheckBytes;
}

/// Bytes that framing adds to a segment of `chunks` chunks without a mask.
constexpr std::uint64_t segment_framing_bytes(const SegmentLayout& layout, std::uint64_t chunks) {
  return segment_body_offset(layout, chunks, 0) + kSegmentChecksumBytes;
}
/// Upper limit of a segment's bytes: mask and chunks together are never larger than the values.
constexpr std::uint64_t max_segment_bytes(const SegmentLayout& layout, std::uint64_t segment) {
  const std::uint64_t raw = raw_bytes(layout, layout.segment_box(segment));
  return segment_framing_bytes(layout, layout.segment_chunks(segment)) + varint_bytes(raw) - 1 + raw;
}

/// Size and mask size.
constexpr void put_segment_prefix(std::uint8_t* out, const SegmentLayout& layout, std::uint64_t size,
                                  std::uint64_t mask_bytes) {
  const std::size_t width = segment_size_width(layout);
  put_little_endian(out, size, width);
  kernels::put_leb128(out + width, mask_bytes);
}
/// Reads them back; false when the mask size is not a varint that ends before the segment, or exceeds the values.
constexpr bool get_segment_prefix(const std::uint8_t* in, std::uint64_t bytes, const SegmentLayout& layout,
                                  std::uint64_t segment, std::uint64_t& size, std::uint64_t& mask_bytes) {
  const std::size_t width = segment_size_width(layout);
  if (bytes < width) return false;
  size = get_little_endian(in, width);
  const std::uint8_t* at = in + width;
  return kernels::get_leb128(at, in + bytes, mask_bytes) &&
         mask_bytes <= raw_bytes(layout, layout.segment_box(segment));
}

/// A chunk's entry in the table.
struct SegmentEntry {
  ChunkForm form = ChunkForm::coded;
  std::uint64_t stored = 0;  ///< bytes
  std::uint16_t check = 0;
};
constexpr void put_segment_entry(std::uint8_t* out, const SegmentLayout& layout, const SegmentEntry& entry) {
  const std::size_t width = chunk_size_width(layout);
  put_little_endian(out, entry.form == ChunkForm::raw ? raw_marker(width) : entry.stored, width);
  put_little_endian(out + width, entry.check, kChunkCheckBytes);
}
/// Reads one; `raw` is the bytes of the chunk's values. False for a coded chunk that is not smaller.
constexpr bool get_segment_entry(const std::uint8_t* in, const SegmentLayout& layout, std::uint64_t raw,
                                 SegmentEntry& entry) {
  const std::size_t width = chunk_size_width(layout);
  const std::uint64_t size = get_little_endian(in, width);
  entry.check = static_cast<std::uint16_t>(get_little_endian(in + width, kChunkCheckBytes));
  if (size == raw_marker(width)) {
    entry.form = ChunkForm::raw;
    entry.stored = raw;
    return true;
  }
  entry.form = size == 0 ? ChunkForm::masked : ChunkForm::coded;
  entry.stored = size;
  return size < raw;
}

}  // namespace quern

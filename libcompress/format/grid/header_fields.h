// The header of an array as a struct and as bytes, for host and device code: composing, sizing and parsing without
// allocation. Metadata is taken and given as it lies in the stream; packing it is the host's (frame/metadata.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/dtype.h>
#include <quern/shape.h>

#include "kernels/common/xxh3.h"
#include "libcompress/format/bytes.h"
#include "libcompress/format/fault.h"
#include "libcompress/format/frame/header_frame.h"
#include "libcompress/format/grid/limits.h"

namespace quern {

/// What the header of every array has, whoever owns its parts of variable length.
struct HeaderFields : StreamStart {
  DType dtype = DType::f32;
  Shape shape;
  ErrorBound requested;
  EnforcedBound enforced;
  std::optional<ValueRange> range;
  std::uint16_t codec_id = 0;
  std::uint16_t codec_version = 0;
  WriterId writer;
  ChunkGrid grid;
  std::uint64_t checksum = 0;  ///< set by parsing and by composing

  constexpr bool has_level_tables() const { return (must_understand & kLevelTables) != 0; }
  constexpr bool may_have_mask_levels() const { return (must_understand & kMaskLevels) != 0; }
};

/// A header whose parts of variable length lie in bytes somebody else owns; nothing is allocated.
struct HeaderView : HeaderFields {
  std::span<const std::uint8_t> fills;  ///< elements of the array's type, little-endian
  std::span<const std::uint8_t> params;
  MetadataView metadata;

  constexpr std::size_t fill_count() const { return fills.empty() ? 0 : fills.size() / dtype_bytes(dtype); }
};
static_assert(std::is_trivially_copyable_v<HeaderView>);

/// Exact size of a header within the limits (limits.h).
constexpr std::uint64_t header_bytes(const HeaderView& header);
/// Everything before the checksum: of header_bytes(header) bytes all but the last kHeaderChecksumBytes.
constexpr void put_header_body(ByteWriter& out, const HeaderView& header);
/// The whole header, checksum included, which `header` gets too. Returns its bytes, or 0 when `out` has too few.
constexpr std::size_t compose_header(HeaderView& header, std::span<std::uint8_t> out);

/// Reads exactly one header; `bytes` must end where the header ends. Views point into `bytes`; packed metadata is not
/// checked beyond its size.
constexpr Fault view_header(std::span<const std::uint8_t> bytes, HeaderView& header);
/// The same without the check of the checksum, for callers that do it themselves; `body` is what the checksum is of.
constexpr Fault view_header_body(std::span<const std::uint8_t> body, HeaderView& header);

/// What a grid must satisfy for a shape: extents multiply to the shape's elements, chunks within limits.
constexpr bool grid_fits(const ChunkGrid& grid, const Shape& shape);

namespace detail {

/// From the version to the metadata.
template <class W>
constexpr void put_header_fields(W& out, const HeaderView& header) {
  put_stream_start(out, header);
  out.u8(static_cast<std::uint8_t>(header.dtype));
  out.u8(static_cast<std::uint8_t>(header.shape.rank()));
  for (const std::uint64_t extent : header.shape.extents()) out.varint(extent);
  put_bound(out, header);
  out.varint(header.codec_id);
  out.varint(header.codec_version);
  put_writer(out, header.writer);
  for (const std::uint64_t extent : header.grid.extents) out.varint(extent);
  for (const std::uint64_t extent : header.grid.chunk) out.varint(extent);
  out.varint(header.fill_count());
  out.bytes(header.fills);
  out.varint(header.params.size());
  out.bytes(header.params);
  put_metadata(out, header.metadata);
}

/// The functions below read a part each; a reader that has a fault reads zeros, and the first fault stays.
constexpr void read_shape(ByteReader& in, HeaderFields& header) {
  const std::uint8_t rank = in.u8();
  if (!in.require(rank <= kMaxRank, FormatFault::too_many_axes, rank, kMaxRank)) return;
  std::array<std::uint64_t, kMaxRank> extents{};
  for (std::size_t a = 0; a < rank; ++a) extents[a] = in.varint(kMaxElems);
  if (!in.ok()) return;
  const auto shape = Shape::try_make({extents.data(), rank});
  if (in.require(shape.has_value(), FormatFault::too_many_elements)) header.shape = *shape;
}

constexpr void read_grid(ByteReader& in, HeaderFields& header) {
  for (std::uint64_t& extent : header.grid.extents) extent = in.varint(kMaxElems);
  for (std::uint64_t& extent : header.grid.chunk) extent = in.varint(kMaxChunkElems);
  if (in.ok()) in.require(grid_fits(header.grid, header.shape), FormatFault::grid_does_not_fit);
}

constexpr void read_header_fields(ByteReader& in, HeaderView& header) {
  read_stream_start(in, header);
  in.require((header.must_understand & kRecords) == 0, FormatFault::holds_records);
  const std::uint8_t dtype = in.u8();
  if (!in.require(is_known_dtype(dtype), FormatFault::unknown_dtype, dtype)) return;
  header.dtype = static_cast<DType>(dtype);
  read_shape(in, header);
  read_bound(in, header);
  header.codec_id = static_cast<std::uint16_t>(in.varint(UINT16_MAX));
  header.codec_version = static_cast<std::uint16_t>(in.varint(UINT16_MAX));
  header.writer = read_writer(in);
  read_grid(in, header);
  header.fills = in.bytes(in.varint(kMaxFillValues) * dtype_bytes(header.dtype));
  header.params = in.bytes(in.varint(kMaxParamsBytes));
  read_metadata(in, header.metadata);
  in.expect_end();
}

}  // namespace detail

constexpr std::uint64_t header_bytes(const HeaderView& header) {
  ByteCounter counter;
  detail::put_header_fields(counter, header);
  return kHeaderPrefixBytes + counter.size() + kHeaderChecksumBytes;
}

constexpr void put_header_body(ByteWriter& out, const HeaderView& header) {
  out.u64(detail::kMagic);
  out.u32(static_cast<std::uint32_t>(header_bytes(header)));
  detail::put_header_fields(out, header);
}

constexpr std::size_t compose_header(HeaderView& header, std::span<std::uint8_t> out) {
  ByteWriter writer(out);
  put_header_body(writer, header);
  if (!writer.fits()) return 0;
  header.checksum = kernels::xxh3_64(out.data(), writer.size());
  writer.u64(header.checksum);
  return writer.fits() ? writer.size() : 0;
}

constexpr Fault view_header_body(std::span<const std::uint8_t> body, HeaderView& header) {
  header = HeaderView{};
  ByteReader in(body);
  in.skip(kHeaderPrefixBytes);
  detail::read_header_fields(in, header);
  return detail::fault_in_fields(in);
}

constexpr Fault view_header(std::span<const std::uint8_t> bytes, HeaderView& header) {
  std::span<const std::uint8_t> body;
  std::uint64_t checksum = 0;
  const Fault fault = open_header(bytes, body, checksum);
  if (!fault.ok()) return fault;
  const Fault in_fields = view_header_body(body, header);
  header.checksum = checksum;
  return in_fields;
}

constexpr bool grid_fits(const ChunkGrid& grid, const Shape& shape) {
  const auto whole = Shape::try_make(grid.extents);
  if (!whole || whole->elems() != shape.elems()) return false;
  std::uint64_t chunk_elems = 1;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::uint64_t extent = grid.chunk[a];
    const std::uint64_t most = grid.extents[a] == 0 ? 1 : grid.extents[a];
    if (extent == 0 || extent > most) return false;
    const auto product = checked_multiply(chunk_elems, extent);
    if (!product || *product > kMaxChunkElems) return false;
    chunk_elems = *product;
  }
  return true;
}

}  // namespace quern

// The header as a record and as bytes, for host and device code: composing, sizing and parsing without allocation.
// Metadata is taken and given as it lies in the stream; packing it is the host's (metadata.h).
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
#include "libcompress/core/rounding.h"
#include "libcompress/format/bytes.h"
#include "libcompress/format/fault.h"
#include "libcompress/format/grid/limits.h"

namespace quern {

inline constexpr std::uint8_t kFormatMajor = 0;
inline constexpr std::uint8_t kFormatMinor = 1;
/// Bytes that tell how long the header is: magic and header size.
inline constexpr std::size_t kHeaderPrefixBytes = 12;
inline constexpr std::size_t kHeaderChecksumBytes = 8;
/// Codec id of chunks that are all stored as they are; belongs to the container, not to a codec.
inline constexpr std::uint16_t kStoredCodecId = 0;
/// Feature bit that must be understood: segments have level tables (level_table.h).
inline constexpr std::uint64_t kLevelTables = 1;

/// Who wrote a stream; informative.
struct WriterId {
  std::uint8_t implementation = 1;  ///< 1: this library
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  std::uint8_t patch = 0;
};

/// What every header has, whoever owns its parts of variable length.
struct HeaderFields {
  std::uint8_t major = kFormatMajor;
  std::uint8_t minor = kFormatMinor;
  std::uint64_t must_understand = 0;
  std::uint64_t may_ignore = 0;
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
};

/// The metadata section as it lies in bytes somebody else owns.
struct MetadataView {
  std::span<const std::uint8_t> stored;
  std::uint64_t bytes = 0;  ///< of the metadata, unpacked; at most kMaxMetadataBytes
  bool is_packed = false;
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

/// True when the bytes begin as a stream does, as far as they go.
constexpr bool begins_like_stream(std::span<const std::uint8_t> bytes);
/// Bytes of the whole header, from its first kHeaderPrefixBytes. Checks magic and limit.
constexpr Fault header_size(std::span<const std::uint8_t> prefix, std::uint64_t& size);
/// Reads exactly one header; `bytes` must end where the header ends. Views point into `bytes`; packed metadata is not
/// checked beyond its size.
constexpr Fault view_header(std::span<const std::uint8_t> bytes, HeaderView& header);
/// The same without the check of the checksum, for callers that do it themselves; `body` is what the checksum is of.
constexpr Fault view_header_body(std::span<const std::uint8_t> body, HeaderView& header);

/// What a grid must satisfy for a shape: extents multiply to the shape's elements, chunks within limits.
constexpr bool grid_fits(const ChunkGrid& grid, const Shape& shape);

namespace detail {

// A byte no text file begins with, the name, 'X' for "experimental", then CR LF and a lone LF, which a conversion of
// line endings in either direction changes: 89 51 52 4E 58 0D 0A 0A.
inline constexpr std::uint64_t kMagic = UINT64_C(0x0A0A0D584E525189);
inline constexpr std::size_t kMagicBytes = 8;
inline constexpr std::uint64_t kKnownMustUnderstand = kLevelTables;

// Beside the kinds of bounds.
inline constexpr std::uint8_t kEnforcedStored = 0x40;
inline constexpr std::uint8_t kRangeStored = 0x80;

template <class W>
constexpr void put_bound(W& out, const HeaderFields& header) {
  // The enforced value is the requested one unless the request had to be turned into another kind or number.
  const bool store_enforced =
      header.enforced.kind != BoundKind::lossless &&
      !(header.requested.kind == header.enforced.kind && header.requested.value == header.enforced.value);
  std::uint8_t flags = static_cast<std::uint8_t>(static_cast<unsigned>(header.requested.kind) |
                                                 static_cast<unsigned>(header.enforced.kind) << 3);
  if (store_enforced) flags |= kEnforcedStored;
  if (header.range) flags |= kRangeStored;
  out.u8(flags);
  if (header.requested.kind != BoundKind::lossless) out.f64(header.requested.value);
  if (store_enforced) out.f64(header.enforced.value);
  if (header.range) {
    out.f64(header.range->min);
    out.f64(header.range->max);
  }
}

template <class W>
constexpr void put_metadata(W& out, const MetadataView& metadata) {
  const std::uint64_t stored = metadata.stored.size();
  out.varint(stored << 1 | (metadata.is_packed ? 1 : 0));
  if (metadata.is_packed) out.varint(metadata.bytes);
  out.bytes(metadata.stored);
}

/// From the version to the metadata.
template <class W>
constexpr void put_header_fields(W& out, const HeaderView& header) {
  out.u8(header.major);
  out.u8(header.minor);
  out.varint(header.must_understand);
  out.varint(header.may_ignore);
  out.u8(static_cast<std::uint8_t>(header.dtype));
  out.u8(static_cast<std::uint8_t>(header.shape.rank()));
  for (const std::uint64_t extent : header.shape.extents()) out.varint(extent);
  put_bound(out, header);
  out.varint(header.codec_id);
  out.varint(header.codec_version);
  out.u8(header.writer.implementation);
  out.u8(header.writer.major);
  out.u8(header.writer.minor);
  out.u8(header.writer.patch);
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

constexpr bool kind_is_enforceable(BoundKind kind) {
  return kind == BoundKind::lossless || kind == BoundKind::abs || kind == BoundKind::pwrel;
}

constexpr void read_enforced(ByteReader& in, std::uint8_t flags, HeaderFields& header) {
  EnforcedBound& enforced = header.enforced;
  if ((flags & kEnforcedStored) != 0) {
    in.require(enforced.kind != BoundKind::lossless, FormatFault::lossless_with_value);
    enforced.value = in.f64();
  } else if (enforced.kind != BoundKind::lossless) {
    in.require(enforced.kind == header.requested.kind, FormatFault::enforced_bound_missing);
    enforced.value = header.requested.value;
  }
  if (enforced.kind != BoundKind::lossless)
    in.require(ErrorBound{enforced.kind, enforced.value}.check(header.dtype).ok() && enforced.value != 0,
               FormatFault::enforced_bound_impossible);
}

constexpr void read_bound(ByteReader& in, HeaderFields& header) {
  const std::uint8_t flags = in.u8();
  const auto requested = static_cast<std::uint8_t>(flags & 7);
  const auto enforced = static_cast<std::uint8_t>(flags >> 3 & 7);
  constexpr auto kLastKind = static_cast<std::uint8_t>(BoundKind::ratio);
  in.require(requested <= kLastKind && enforced <= kLastKind, FormatFault::unknown_bound_kind);
  header.requested.kind = static_cast<BoundKind>(requested);
  header.enforced.kind = static_cast<BoundKind>(enforced);
  in.require(kind_is_enforceable(header.enforced.kind), FormatFault::bound_kind_not_enforceable);
  if (!in.ok()) return;
  if (header.requested.kind != BoundKind::lossless) {
    header.requested.value = in.f64();
    in.require(header.requested.check(header.dtype).ok(), FormatFault::requested_bound_impossible);
  }
  read_enforced(in, flags, header);
  if ((flags & kRangeStored) == 0) return;
  ValueRange range;
  range.min = in.f64();
  range.max = in.f64();
  in.require(is_finite(range.min) && is_finite(range.max) && range.min <= range.max,
             FormatFault::value_range_impossible);
  header.range = range;
}

constexpr void read_grid(ByteReader& in, HeaderFields& header) {
  for (std::uint64_t& extent : header.grid.extents) extent = in.varint(kMaxElems);
  for (std::uint64_t& extent : header.grid.chunk) extent = in.varint(kMaxChunkElems);
  if (in.ok()) in.require(grid_fits(header.grid, header.shape), FormatFault::grid_does_not_fit);
}

constexpr void read_metadata(ByteReader& in, MetadataView& metadata) {
  const std::uint64_t head = in.varint(kMaxMetadataBytes << 1 | 1);
  metadata.is_packed = (head & 1) != 0;
  metadata.bytes = metadata.is_packed ? in.varint(kMaxMetadataBytes) : head >> 1;
  metadata.stored = in.bytes(head >> 1);
}

constexpr void read_header_fields(ByteReader& in, HeaderView& header) {
  header.major = in.u8();
  header.minor = in.u8();
  in.require(header.major == kFormatMajor && header.minor == kFormatMinor, FormatFault::other_version, header.major,
             header.minor);
  header.must_understand = in.varint();
  header.may_ignore = in.varint();
  in.require((header.must_understand & ~kKnownMustUnderstand) == 0, FormatFault::unknown_features,
             header.must_understand);
  const std::uint8_t dtype = in.u8();
  if (!in.require(is_known_dtype(dtype), FormatFault::unknown_dtype, dtype)) return;
  header.dtype = static_cast<DType>(dtype);
  read_shape(in, header);
  read_bound(in, header);
  header.codec_id = static_cast<std::uint16_t>(in.varint(UINT16_MAX));
  header.codec_version = static_cast<std::uint16_t>(in.varint(UINT16_MAX));
  header.writer.implementation = in.u8();
  header.writer.major = in.u8();
  header.writer.minor = in.u8();
  header.writer.patch = in.u8();
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

constexpr bool begins_like_stream(std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size() && i < detail::kMagicBytes; ++i)
    if (bytes[i] != static_cast<std::uint8_t>(detail::kMagic >> (8 * i))) return false;
  return true;
}

constexpr Fault header_size(std::span<const std::uint8_t> prefix, std::uint64_t& size) {
  if (!begins_like_stream(prefix)) return {FormatFault::not_a_stream};
  ByteReader in(prefix);
  in.skip(detail::kMagicBytes);
  size = in.u32();
  in.require(size >= kHeaderPrefixBytes + kHeaderChecksumBytes && size <= kMaxHeaderBytes,
             FormatFault::header_size_impossible, size, kMaxHeaderBytes);
  return in.fault();
}

constexpr Fault view_header_body(std::span<const std::uint8_t> body, HeaderView& header) {
  header = HeaderView{};
  ByteReader in(body);
  in.skip(kHeaderPrefixBytes);
  detail::read_header_fields(in, header);
  // Inside a header whose checksum holds, running out of bytes means that it was never valid.
  const FormatFault what = in.fault().what;
  if (what == FormatFault::too_few_bytes || what == FormatFault::ends_inside_number)
    return {FormatFault::header_ends_early};
  return in.fault();
}

constexpr Fault view_header(std::span<const std::uint8_t> bytes, HeaderView& header) {
  std::uint64_t size = 0;
  const Fault fault =
      header_size(bytes.first(bytes.size() < kHeaderPrefixBytes ? bytes.size() : kHeaderPrefixBytes), size);
  if (!fault.ok()) return fault;
  if (size != bytes.size()) return {FormatFault::header_incomplete, bytes.size(), size};
  const auto body = bytes.first(bytes.size() - kHeaderChecksumBytes);
  ByteReader tail(bytes.last(kHeaderChecksumBytes));
  const std::uint64_t checksum = tail.u64();
  if (kernels::xxh3_64(body.data(), body.size()) != checksum) return {FormatFault::header_damaged};
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

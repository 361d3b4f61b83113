// Writing, reading and checking the header.
#include "libcompress/format/header.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "libcompress/format/checksum.h"
#include "libcompress/format/limits.h"
#include "libcompress/format/metadata.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern {
namespace {

// A byte no text file begins with, the name, 'X' for "experimental", then CR LF and a lone LF, which a conversion of
// line endings in either direction changes.
constexpr std::array<std::uint8_t, 8> kMagic{0x89, 'Q', 'R', 'N', 'X', 0x0D, 0x0A, 0x0A};
constexpr std::size_t kChecksumBytes = 8;
constexpr std::uint64_t kKnownMustUnderstand = 0;

constexpr std::uint8_t kEnforcedStored = 0x40;
constexpr std::uint8_t kRangeStored = 0x80;

bool kind_is_enforceable(BoundKind kind) {
  return kind == BoundKind::lossless || kind == BoundKind::abs || kind == BoundKind::pwrel;
}

// The enforced value is the requested one unless the request had to be turned into another kind or number.
bool enforced_is_requested(const ErrorBound& requested, const EnforcedBound& enforced) {
  return requested.kind == enforced.kind && requested.value == enforced.value;
}

void write_bound(Writer& out, const HeaderFields& header) {
  const bool store_enforced =
      header.enforced.kind != BoundKind::lossless && !enforced_is_requested(header.requested, header.enforced);
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

Status read_bound(Reader& in, HeaderFields& header) {
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t flags, in.u8());
  const std::uint8_t requested = flags & 7;
  const std::uint8_t enforced = flags >> 3 & 7;
  if (requested > static_cast<std::uint8_t>(BoundKind::ratio) || enforced > static_cast<std::uint8_t>(BoundKind::ratio))
    return Status(StatusCode::corrupt, "the header names an unknown kind of bound");
  header.requested.kind = static_cast<BoundKind>(requested);
  header.enforced.kind = static_cast<BoundKind>(enforced);
  if (!kind_is_enforceable(header.enforced.kind))
    return Status(StatusCode::corrupt, "the header's enforced bound is of a kind no codec works under");
  if (header.requested.kind != BoundKind::lossless) {
    QUERN_ASSIGN_OR_RETURN(header.requested.value, in.f64());
    if (!header.requested.check(header.dtype).ok())
      return Status(StatusCode::corrupt, "the header's requested bound is impossible");
  }
  if ((flags & kEnforcedStored) != 0) {
    if (header.enforced.kind == BoundKind::lossless)
      return Status(StatusCode::corrupt, "the header gives a value to a lossless bound");
    QUERN_ASSIGN_OR_RETURN(header.enforced.value, in.f64());
  } else if (header.enforced.kind != BoundKind::lossless) {
    if (header.enforced.kind != header.requested.kind)
      return Status(StatusCode::corrupt, "the header lacks the enforced bound");
    header.enforced.value = header.requested.value;
  }
  if (header.enforced.kind != BoundKind::lossless) {
    const ErrorBound as_bound{header.enforced.kind, header.enforced.value};
    if (!as_bound.check(header.dtype).ok() || header.enforced.value == 0)
      return Status(StatusCode::corrupt, "the header's enforced bound is impossible");
  }
  if ((flags & kRangeStored) != 0) {
    ValueRange range;
    QUERN_ASSIGN_OR_RETURN(range.min, in.f64());
    QUERN_ASSIGN_OR_RETURN(range.max, in.f64());
    if (!std::isfinite(range.min) || !std::isfinite(range.max) || range.min > range.max)
      return Status(StatusCode::corrupt, "the header's value range is impossible");
    header.range = range;
  }
  return {};
}

Status read_shape(Reader& in, HeaderFields& header) {
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t rank, in.u8());
  if (rank > kMaxRank)
    return Status(StatusCode::corrupt, "the header's array has {0} axes; at most {1} are possible", rank,
                  static_cast<std::int64_t>(kMaxRank));
  std::array<std::uint64_t, kMaxRank> extents{};
  for (std::size_t a = 0; a < rank; ++a) {
    QUERN_ASSIGN_OR_RETURN(extents[a], in.varint(kMaxElems));
  }
  auto shape = Shape::make({extents.data(), rank});
  if (!shape.ok()) return Status(StatusCode::corrupt, "the header's shape has more elements than sizes can hold");
  header.shape = *shape;
  return {};
}

Status read_grid(Reader& in, HeaderFields& header) {
  for (std::uint64_t& extent : header.grid.extents) {
    QUERN_ASSIGN_OR_RETURN(extent, in.varint(kMaxElems));
  }
  for (std::uint64_t& extent : header.grid.chunk) {
    QUERN_ASSIGN_OR_RETURN(extent, in.varint(kMaxChunkElems));
  }
  if (!check_grid(header.grid, header.shape).ok())
    return Status(StatusCode::corrupt, "the header's chunk grid does not fit the array");
  return {};
}

Result<HeaderView> view_fields(Reader& in) {
  HeaderView header;
  QUERN_ASSIGN_OR_RETURN(header.major, in.u8());
  QUERN_ASSIGN_OR_RETURN(header.minor, in.u8());
  if (header.major != kFormatMajor || header.minor != kFormatMinor)
    return Status(StatusCode::unsupported_version,
                  "the stream is of experimental format {0}.{1}; read it with the release that wrote it", header.major,
                  header.minor);
  QUERN_ASSIGN_OR_RETURN(header.must_understand, in.varint());
  QUERN_ASSIGN_OR_RETURN(header.may_ignore, in.varint());
  if ((header.must_understand & ~kKnownMustUnderstand) != 0)
    return Status(StatusCode::unsupported, "the stream needs features this build does not know (bits {0})",
                  static_cast<std::int64_t>(header.must_understand));
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t dtype, in.u8());
  if (!is_known_dtype(dtype))
    return Status(StatusCode::corrupt, "the header names element type {0}, which does not exist", dtype);
  header.dtype = static_cast<DType>(dtype);
  QUERN_RETURN_IF_ERROR(read_shape(in, header));
  QUERN_RETURN_IF_ERROR(read_bound(in, header));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t codec_id, in.varint(UINT16_MAX));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t codec_version, in.varint(UINT16_MAX));
  header.codec_id = static_cast<std::uint16_t>(codec_id);
  header.codec_version = static_cast<std::uint16_t>(codec_version);
  QUERN_ASSIGN_OR_RETURN(header.writer.implementation, in.u8());
  QUERN_ASSIGN_OR_RETURN(header.writer.major, in.u8());
  QUERN_ASSIGN_OR_RETURN(header.writer.minor, in.u8());
  QUERN_ASSIGN_OR_RETURN(header.writer.patch, in.u8());
  QUERN_RETURN_IF_ERROR(read_grid(in, header));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t fills, in.varint(kMaxFillValues));
  QUERN_ASSIGN_OR_RETURN(header.fills, in.bytes(fills * dtype_bytes(header.dtype)));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t params, in.varint(kMaxParamsBytes));
  QUERN_ASSIGN_OR_RETURN(header.params, in.bytes(params));
  QUERN_ASSIGN_OR_RETURN(header.metadata, view_metadata(in));
  QUERN_RETURN_IF_ERROR(in.expect_end());
  return header;
}

}  // namespace

WriterId this_writer() { return {1, QUERN_VERSION_MAJOR, QUERN_VERSION_MINOR, QUERN_VERSION_PATCH}; }

Status check_grid(const ChunkGrid& grid, const Shape& shape) {
  const Status misfit(StatusCode::corrupt, "the chunk grid does not fit the array");
  const auto whole = Shape::make(grid.extents);
  if (!whole.ok() || whole->elems() != shape.elems()) return misfit;
  std::uint64_t chunk_elems = 1;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::uint64_t extent = grid.chunk[a];
    if (extent == 0 || extent > std::max<std::uint64_t>(grid.extents[a], 1)) return misfit;
    const auto product = checked_multiply(chunk_elems, extent);
    if (!product || *product > kMaxChunkElems) return misfit;
    chunk_elems = *product;
  }
  return {};
}

Result<Vector<std::uint8_t>> serialize_header(Header& header) {
  if (header.params.size() > kMaxParamsBytes)
    return Status(StatusCode::internal, "the codec wants {0} bytes of parameters; {1} is the limit",
                  static_cast<std::int64_t>(header.params.size()), static_cast<std::int64_t>(kMaxParamsBytes));
  if (header.metadata.size() > kMaxMetadataBytes)
    return Status(StatusCode::invalid_argument, "the metadata has {0} bytes; {1} is the limit",
                  static_cast<std::int64_t>(header.metadata.size()), static_cast<std::int64_t>(kMaxMetadataBytes));
  if (header.fill_bits.size() > kMaxFillValues)
    return Status(StatusCode::invalid_argument, "{0} fill values are declared; {1} is the limit",
                  static_cast<std::int64_t>(header.fill_bits.size()), static_cast<std::int64_t>(kMaxFillValues));
  Vector<std::uint8_t> fields;
  Writer out(fields);
  out.u8(header.major);
  out.u8(header.minor);
  out.varint(header.must_understand);
  out.varint(header.may_ignore);
  out.u8(static_cast<std::uint8_t>(header.dtype));
  out.u8(static_cast<std::uint8_t>(header.shape.rank()));
  for (const std::uint64_t extent : header.shape.extents()) out.varint(extent);
  write_bound(out, header);
  out.varint(header.codec_id);
  out.varint(header.codec_version);
  out.u8(header.writer.implementation);
  out.u8(header.writer.major);
  out.u8(header.writer.minor);
  out.u8(header.writer.patch);
  for (const std::uint64_t extent : header.grid.extents) out.varint(extent);
  for (const std::uint64_t extent : header.grid.chunk) out.varint(extent);
  out.varint(header.fill_bits.size());
  for (const std::uint64_t bits : header.fill_bits) out.unsigned_of(bits, dtype_bytes(header.dtype));
  out.varint(header.params.size());
  out.bytes(header.params);
  write_metadata(out, header.metadata);

  Vector<std::uint8_t> bytes;
  Writer whole(bytes);
  whole.bytes(kMagic);
  whole.u32(static_cast<std::uint32_t>(kHeaderPrefixBytes + fields.size() + kChecksumBytes));
  whole.bytes(fields);
  header.checksum = checksum64(bytes);
  whole.u64(header.checksum);
  return bytes;
}

bool begins_like_stream(std::span<const std::uint8_t> bytes) {
  const std::size_t n = std::min(bytes.size(), kMagic.size());
  return std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n), kMagic.begin());
}

Result<std::uint64_t> header_size(std::span<const std::uint8_t> prefix) {
  if (!begins_like_stream(prefix))
    return Status(StatusCode::bad_magic,
                  "these bytes do not begin a quern stream (or were changed as if they were text)");
  Reader in(prefix);
  QUERN_RETURN_IF_ERROR(in.skip(kMagic.size()));
  QUERN_ASSIGN_OR_RETURN(const std::uint32_t size, in.u32());
  if (size < kHeaderPrefixBytes + kChecksumBytes || size > kMaxHeaderBytes)
    return Status(StatusCode::corrupt, "the header claims {0} bytes; {1} is the limit", size,
                  static_cast<std::int64_t>(kMaxHeaderBytes));
  return size;
}

Result<HeaderView> view_header(std::span<const std::uint8_t> bytes) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size,
                         header_size(bytes.first(std::min(bytes.size(), kHeaderPrefixBytes))));
  if (size != bytes.size())
    return Status(StatusCode::truncated, "the header has {0} bytes of {1}", static_cast<std::int64_t>(bytes.size()),
                  static_cast<std::int64_t>(size));
  Reader tail(bytes.last(kChecksumBytes));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t stored, tail.u64());
  const auto body = bytes.first(bytes.size() - kChecksumBytes);
  if (checksum64(body) != stored)
    return Status(StatusCode::checksum_mismatch, "the header is damaged: its checksum does not match");
  Reader in(body.subspan(kHeaderPrefixBytes));
  auto header = view_fields(in);
  // Inside a header whose checksum holds, running out of bytes means that it was never valid.
  if (!header.ok() && header.status().code() == StatusCode::truncated)
    return Status(StatusCode::corrupt, "the header ends before its fields do");
  if (header.ok()) header->checksum = stored;
  return header;
}

Result<Header> parse_header(std::span<const std::uint8_t> bytes) {
  QUERN_ASSIGN_OR_RETURN(const HeaderView view, view_header(bytes));
  Header header;
  static_cast<HeaderFields&>(header) = view;
  header.fill_bits.resize(view.fill_count());
  Reader fills(view.fills);
  for (std::uint64_t& bits : header.fill_bits) {
    QUERN_ASSIGN_OR_RETURN(bits, fills.unsigned_of(dtype_bytes(view.dtype)));
  }
  header.params.assign(view.params.begin(), view.params.end());
  QUERN_ASSIGN_OR_RETURN(header.metadata, unpack_metadata(view.metadata));
  return header;
}

Result<ReadHeader> read_header(ByteSource& source) {
  Vector<std::uint8_t> bytes(kHeaderPrefixBytes);
  QUERN_ASSIGN_OR_RETURN(const std::size_t have, read_up_to(source, bytes));
  if (have < bytes.size()) {
    if (!begins_like_stream({bytes.data(), have}))
      return Status(StatusCode::bad_magic,
                    "these bytes do not begin a quern stream (or were changed as if they were text)");
    return Status(StatusCode::truncated, "the data ends after {0} bytes, inside the header",
                  static_cast<std::int64_t>(have));
  }
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, header_size(bytes));
  bytes.resize(static_cast<std::size_t>(size));
  QUERN_ASSIGN_OR_RETURN(const std::size_t rest, read_up_to(source, std::span(bytes).subspan(kHeaderPrefixBytes)));
  if (rest < bytes.size() - kHeaderPrefixBytes)
    return Status(StatusCode::truncated, "the data ends after {0} bytes, inside the header",
                  static_cast<std::int64_t>(kHeaderPrefixBytes + rest));
  ReadHeader result;
  result.bytes = bytes.size();
  QUERN_ASSIGN_OR_RETURN(result.header, parse_header(bytes));
  return result;
}

}  // namespace quern

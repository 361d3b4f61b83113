// The header of a stream: everything that is known before the first value. Parsing checks all limits and never trusts a
// number; codec parameters stay opaque here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/dtype.h>
#include <quern/memory.h>
#include <quern/shape.h>
#include <quern/status.h>
#include <quern/stream_io.h>

#include "libcompress/format/metadata.h"

namespace quern {

inline constexpr std::uint8_t kFormatMajor = 0;
inline constexpr std::uint8_t kFormatMinor = 1;
/// Bytes that tell how long the header is: magic and header size.
inline constexpr std::size_t kHeaderPrefixBytes = 12;
/// Codec id of chunks that are all stored as they are; belongs to the container, not to a codec.
inline constexpr std::uint16_t kStoredCodecId = 0;

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
  std::uint64_t checksum = 0;  ///< set by parsing and by serialize_header
};

/// A header as it lies in bytes somebody else owns; nothing is allocated.
struct HeaderView : HeaderFields {
  std::span<const std::uint8_t> fills;  ///< elements of the array's type, little-endian
  std::span<const std::uint8_t> params;
  MetadataView metadata;

  std::size_t fill_count() const { return fills.size() / dtype_bytes(dtype); }
};

struct Header : HeaderFields {
  Vector<std::uint64_t> fill_bits;
  Vector<std::uint8_t> params;
  Vector<std::uint8_t> metadata;
};

/// This library's writer id.
WriterId this_writer();

/// The stored form; sets `header.checksum`. Fails when a limit is exceeded.
Result<Vector<std::uint8_t>> serialize_header(Header& header);

/// Reads exactly one header; `bytes` must end where the header ends.
Result<Header> parse_header(std::span<const std::uint8_t> bytes);
/// The same without a copy; packed metadata stays packed, and is not checked beyond its size.
Result<HeaderView> view_header(std::span<const std::uint8_t> bytes);

/// Bytes of the whole header, from its first kHeaderPrefixBytes. Checks magic and limit.
Result<std::uint64_t> header_size(std::span<const std::uint8_t> prefix);

/// A header and its stored bytes.
struct ReadHeader {
  Header header;
  std::uint64_t bytes = 0;
};
/// Reads one header from the source's current position and leaves the source right after it. A source that is at its
/// end gives `truncated` with first() == 0.
Result<ReadHeader> read_header(ByteSource& source);

/// True when the bytes begin as a stream does, as far as they go.
bool begins_like_stream(std::span<const std::uint8_t> bytes);

/// What a grid must satisfy for a shape: extents multiply to the shape's elements, chunks within limits.
Status check_grid(const ChunkGrid& grid, const Shape& shape);

}  // namespace quern

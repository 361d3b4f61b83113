// The header of an array's stream: everything that is known before the first value. Parsing checks all limits and never
// trusts a number; codec parameters stay opaque here. The bytes are read and written by header_fields.h.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>
#include <quern/stream_io.h>

#include "libcompress/format/frame/header_bytes.h"
#include "libcompress/format/grid/header_fields.h"

namespace quern {

struct Header : HeaderFields {
  Vector<std::uint64_t> fill_bits;
  Vector<std::uint8_t> params;
  Vector<std::uint8_t> metadata;
};

/// The stored form; sets `header.checksum`. Fails when a limit is exceeded.
Result<Vector<std::uint8_t>> serialize_header(Header& header);

/// Reads exactly one header; `bytes` must end where the header ends.
Result<Header> parse_header(std::span<const std::uint8_t> bytes);
/// The same without a copy; packed metadata stays packed, and is not checked beyond its size.
Result<HeaderView> view_header(std::span<const std::uint8_t> bytes);

/// A header and its stored bytes.
struct ReadHeader {
  Header header;
  std::uint64_t bytes = 0;
};
/// Reads one header from the source's current position and leaves the source right after it. A source that is at its
/// end gives `truncated` with first() == 0.
Result<ReadHeader> read_header(ByteSource& source);

/// grid_fits as a Status.
Status check_grid(const ChunkGrid& grid, const Shape& shape);

}  // namespace quern

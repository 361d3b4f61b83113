// The bytes of a header from a source, before anybody knows what the payload is.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>
#include <quern/stream_io.h>

#include "libcompress/format/frame/header_frame.h"

namespace quern {

/// This library's writer id.
WriterId this_writer();

/// Bytes of the whole header, from its first kHeaderPrefixBytes. Checks magic and limit.
Result<std::uint64_t> header_size(std::span<const std::uint8_t> prefix);

/// Reads all bytes of one header from the source's current position and leaves the source right after it. Nothing but
/// magic and size is checked. A source that is at its end gives `truncated` with first() == 0. Allocates the header's
/// bytes.
Result<Vector<std::uint8_t>> read_header_bytes(ByteSource& source);

}  // namespace quern

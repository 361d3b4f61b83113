// Where the segments of a stream lie, from the trailer at its end: for random access, whatever the payload is.
#pragma once

#include <cstdint>

#include <quern/memory.h>
#include <quern/stream_io.h>

#include "libcompress/format/frame/trailer.h"

namespace quern {

/// Footer of the stream that ends at `end` of a source that can seek.
Result<Footer> read_footer(ByteSource& source, std::uint64_t end);

/// Which stream of a source, and what its header says.
struct IndexedStream {
  std::uint64_t start = 0;
  std::uint64_t header_bytes = 0;
  std::uint64_t header_checksum = 0;
  std::uint64_t segments = 0;
};

struct StreamIndex {
  Vector<std::uint64_t> offsets;  ///< of segments from the start of the stream, and the end of the last
  std::uint64_t trailer_bytes = 0;
};

/// Fails when a trailer of so many bytes and the offsets of so many segments take more than the limit.
Status need_index_memory(std::uint64_t trailer_bytes, std::uint64_t segments, std::uint64_t memory_limit);

/// Finds the trailer of a stream, which others may follow, from the end of a source that can seek. `fetched` grows by
/// the bytes that were asked for. May throw std::bad_alloc.
Status load_stream_index(ByteSource& source, const IndexedStream& stream, std::uint64_t memory_limit,
                         StreamIndex& index, std::uint64_t& fetched);

}  // namespace quern

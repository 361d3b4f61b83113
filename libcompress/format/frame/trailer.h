// The trailer: sizes of all segments and a footer that is found from the end of the stream.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/format/frame/trailer_frame.h"

namespace quern {

/// Collects segment sizes in order and makes the trailer from them. A reader of a pipe builds the same and compares.
class TrailerBuilder {
 public:
  /// May throw std::bad_alloc.
  void add(std::uint64_t segment_bytes);
  /// The whole trailer of a stream whose header and segments take `bytes_before`. May throw std::bad_alloc.
  Vector<std::uint8_t> finish(std::uint64_t header_checksum, std::uint64_t bytes_before) const;
  std::uint64_t segments() const { return segments_; }
  /// Bytes that finish() will give.
  std::uint64_t trailer_bytes() const { return index_.size() + kFooterBytes; }

 private:
  Vector<std::uint8_t> index_;
  std::uint64_t segments_ = 0;
};

/// Reads the last kFooterBytes of a stream; checks the magic and that the sizes are possible in themselves.
Result<Footer> parse_footer(std::span<const std::uint8_t> bytes);

/// Offsets of all segments from the start of the stream, and the end of the last: segments + 1 numbers. `trailer` is
/// the index and the footer; `index_bytes` has been checked against the source before it was read.
Result<Vector<std::uint64_t>> parse_trailer(std::span<const std::uint8_t> trailer, std::uint64_t header_checksum,
                                            std::uint64_t header_bytes, std::uint64_t segments);

}  // namespace quern

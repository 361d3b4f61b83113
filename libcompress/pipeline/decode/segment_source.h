// Reads segments from a byte source: one after another, or from anywhere through the trailer.
#pragma once

#include <cstdint>

#include <quern/compress.h>
#include <quern/memory.h>
#include <quern/stream_io.h>

#include "libcompress/format/frame/trailer.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/segment.h"
#include "libcompress/pipeline/decode/batch_decoder.h"
#include "libcompress/pipeline/decode/stream_index.h"

namespace quern {

class SegmentSource : public Allocated {
 public:
  /// The source stands right after the header of the stream, which began at `start`. All outlive this object.
  SegmentSource(ByteSource& source, const Header& header, std::uint64_t start, std::uint64_t header_bytes,
                const SegmentLayout& layout, const DecompressOptions& options, std::uint64_t memory_limit)
      : source_(source),
        header_(header),
        start_(start),
        header_bytes_(header_bytes),
        layout_(layout),
        options_(options),
        memory_limit_(memory_limit),
        bytes_read_(header_bytes),
        fetched_(header_bytes) {}

  /// Reads the next segment into the job. Without keep_going fails when it cannot; with it, the job says what is
  /// missing.
  Status read_next(SegmentJob& job);
  /// Reads the trailer after the last segment and looks at what follows. With keep_going nothing fails; the source
  /// stands after the stream unless its end cannot be found.
  Status finish();
  /// Reads the segment that job.segment names, through the trailer's index.
  Status read_at(SegmentJob& job);
  /// Bytes of the stream read in sequence so far.
  std::uint64_t bytes_read() const { return bytes_read_; }
  /// Bytes that were asked of the source, the header among them.
  std::uint64_t bytes_fetched() const { return fetched_; }

 private:
  Status load_index();
  Status index_from_end();
  Status index_by_walking();
  Status read_sized(SegmentJob& job, std::uint64_t size, std::size_t have);
  Status read_sequential(SegmentJob& job);
  /// Reads what a coarse level needs of the segment of `size` bytes that begins at `at` in the stream; false when it
  /// has to be whole, and nothing of it is wanted.
  Result<bool> read_in_part(SegmentJob& job, std::uint64_t at, std::uint64_t size);
  Result<bool> read_head(SegmentJob& job, std::uint64_t at, std::uint64_t size);
  Result<std::size_t> fetch(std::span<std::uint8_t> out);
  Status return_to_sequence();
  Status finish_sequence();
  /// Compares what the source holds next with the trailer it should be; returns its bytes.
  Result<std::size_t> read_trailer(const TrailerBuilder& builder, std::uint64_t bytes_before);
  Status check_what_follows();

  ByteSource& source_;
  const Header& header_;
  std::uint64_t start_;
  std::uint64_t header_bytes_;
  const SegmentLayout& layout_;
  const DecompressOptions& options_;
  std::uint64_t memory_limit_;
  TrailerBuilder builder_;
  std::uint64_t next_ = 0;
  std::uint64_t bytes_read_;
  std::uint64_t fetched_;
  bool moved_ = false;               // by random access; the sequence goes on at start_ + bytes_read_
  Status lost_;                      // sequence broken: no more segments can be found
  Vector<std::uint64_t> offsets_;    // of segments in the stream; empty until loaded
  std::uint64_t trailer_bytes_ = 0;  // of the trailer that the offsets came from
  bool index_tried_ = false;
};

}  // namespace quern

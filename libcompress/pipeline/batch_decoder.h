// Decodes runs of segments that have been read: checks, chunks, special values, holes, each stage in parallel.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/execution.h>
#include <quern/memory.h>

#include "libcompress/core/buffer.h"
#include "libcompress/format/header.h"
#include "libcompress/format/segment.h"
#include "libcompress/pipeline/mask/mask.h"

namespace quern {

/// One segment on its way from bytes to values.
struct SegmentJob {
  std::uint64_t segment = 0;
  std::span<const std::uint8_t> bytes;
  Status read_status;                   ///< why the bytes are short or missing
  MutableBox3 out;                      ///< where the segment's box goes
  std::uint64_t wanted = ~UINT64_C(0);  ///< bit k: decode chunk k

  ParsedSegment parsed;
  mask::SegmentMask mask;
  AlignedBuffer storage;  ///< memory for `bytes`, reused
};

class BatchDecoder : public Allocated {
 public:
  /// Everything outlives the decoder. `codec` is null for streams whose chunks are all raw.
  BatchDecoder(const Header& header, const SegmentLayout& layout, const ChunkDecoder* codec, bool keep_going,
               TaskRunner& runner);

  /// Without keep_going the first failure, in the order of the stream, is returned; with it, what fails becomes a hole.
  Status decode(std::span<SegmentJob> jobs, Vector<Hole>& holes);

  /// Bytes that one segment in flight needs at most, and that running tasks need beside.
  std::uint64_t bytes_per_segment() const;
  std::uint64_t scratch_bytes() const;

 private:
  Status check(SegmentJob& job) const;
  Status decode_checked(std::span<SegmentJob> jobs, Vector<Hole>& holes);
  Status decode_chunk(SegmentJob& job, std::size_t k);
  Status finish(SegmentJob& job) const;
  MutableBox3 chunk_out(const SegmentJob& job, std::size_t k) const;
  void list_holes(const SegmentJob& job, Vector<Hole>& holes) const;

  const Header& header_;
  const SegmentLayout& layout_;
  const ChunkDecoder* codec_;
  bool keep_going_;
  TaskRunner& runner_;
  std::size_t element_bytes_;
  std::uint64_t hole_bits_;
  std::uint64_t mask_limit_;
  BufferPool scratch_;
};

}  // namespace quern

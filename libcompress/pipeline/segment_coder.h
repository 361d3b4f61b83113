// What encodes and decodes runs of segments: the calling machine's threads (batch_encoder.h, batch_decoder.h) or a
// device. Bytes and values do not depend on which it is, nor on how many segments make a run.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/core/buffer.h"
#include "libcompress/format/grid/level_table.h"
#include "libcompress/format/grid/segment.h"
#include "libcompress/pipeline/mask/mask.h"

namespace quern {

class ChunkProgress;  // libcompress/pipeline/pass_progress.h

/// Memory that holds a run of an array's elements in C order.
struct ArrayWindow {
  const std::uint8_t* data = nullptr;
  std::uint64_t begin = 0;  ///< flat index of the first element
};

class SegmentEncoder : public Allocated {
 public:
  virtual ~SegmentEncoder() = default;

  /// Where to tell of chunks, in each encode() to come; null: nowhere. Not every encoder tells.
  virtual void report_to(ChunkProgress*) {}

  /// Bytes of host memory that a segment in flight needs at most, and that are needed beside.
  virtual std::uint64_t bytes_per_segment() const = 0;
  virtual std::uint64_t scratch_bytes() const = 0;
  /// How many segments keep it busy.
  virtual std::uint64_t wanted_segments() const = 0;

  /// Encodes segments [first, first + count), whose elements must be in the window.
  virtual Status encode(std::uint64_t first, std::size_t count, const ArrayWindow& window) = 0;

  /// Results of the last encode().
  virtual std::span<const std::uint8_t> segment_bytes(std::size_t i) const = 0;
  virtual std::uint64_t masked_elems(std::size_t i) const = 0;
  virtual std::uint64_t raw_chunks(std::size_t i) const = 0;
};

/// One segment on its way from bytes to values.
struct SegmentJob {
  std::uint64_t segment = 0;
  std::span<const std::uint8_t> bytes;
  Status read_status;                   ///< why the bytes are short or missing
  MutableBox3 out;                      ///< where the segment's box goes
  ConstBox3 reference;                  ///< the same box of the array it was predicted from; no data: there is none
  std::uint64_t wanted = ~UINT64_C(0);  ///< bit k: decode chunk k
  /// For a coarse level: `bytes` are the head, which `parsed` says is intact, and these beginnings of its chunks, one
  /// after another.
  bool in_part = false;
  std::array<ChunkBeginning, kMaxSegmentChunks> beginnings{};

  ParsedSegment parsed;
  std::uint64_t decoded = 0;  ///< bit k: chunk k has its values already
  mask::SegmentMask mask;
  mask::SegmentMask level_mask;  ///< of the points of a coarse level
  AlignedBuffer storage;         ///< memory for `bytes`, reused
};

class SegmentDecoder : public Allocated {
 public:
  virtual ~SegmentDecoder() = default;

  /// As for SegmentEncoder.
  virtual void report_to(ChunkProgress*) {}

  /// As for SegmentEncoder.
  virtual std::uint64_t bytes_per_segment() const = 0;
  virtual std::uint64_t scratch_bytes() const = 0;
  virtual std::uint64_t wanted_segments() const = 0;

  /// Gives back the memory that it keeps from one decode() to the next.
  virtual void give_back() {}

  /// Without keep_going the first failure, in the order of the stream, is returned; with it, what fails becomes a hole.
  virtual Status decode(std::span<SegmentJob> jobs, Vector<Hole>& holes) = 0;
};

}  // namespace quern

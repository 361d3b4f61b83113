// Decodes runs of segments that have been read: checks, chunks, special values, holes, each stage in parallel.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/references.h>

#include "libcompress/core/buffer.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/segment.h"
#include "libcompress/pipeline/decode/chunk_batch.h"
#include "libcompress/pipeline/decode/level_target.h"
#include "libcompress/pipeline/segment_coder.h"

namespace quern {

class BatchDecoder final : public SegmentDecoder {
 public:
  /// Everything outlives the decoder. `codec` is null for streams whose chunks are all raw.
  BatchDecoder(const Header& header, const SegmentLayout& layout, const ChunkDecoder* codec, bool keep_going,
               TaskRunner& runner);
  /// Decodes to the points of a coarse level.
  BatchDecoder(const Header& header, const SegmentLayout& layout, const LevelTarget& target, const ChunkDecoder* codec,
               bool keep_going, TaskRunner& runner);

  /// Lets another decode whole segments' chunks first. It outlives the decoder; not for coarse levels.
  void decode_first_by(ChunkBatch* batch) { batch_ = batch; }

  /// Holds what was decoded against the segments once more (DecompressOptions::check_faults).
  void check_faults() { check_faults_ = true; }

  void report_to(ChunkProgress* progress) override { progress_ = progress; }
  std::uint64_t bytes_per_segment() const override;
  std::uint64_t scratch_bytes() const override;
  std::uint64_t wanted_segments() const override { return runner_.width(); }
  void give_back() override { scratch_.clear(); }

  Status decode(std::span<SegmentJob> jobs, Vector<Hole>& holes) override;

 private:
  Status check(SegmentJob& job) const;
  void check_beginnings(SegmentJob& job) const;
  Status read_mask(SegmentJob& job) const;
  Status decode_checked(std::span<SegmentJob> jobs, Vector<Hole>& holes);
  Status decode_by_batch(std::span<SegmentJob> jobs);
  Status decode_chunk(SegmentJob& job, std::size_t k);
  Status decode_without_faults(const SegmentJob& job, std::size_t k, const MutableBox3& out,
                               std::span<std::uint8_t> scratch) const;
  Status find_faults(const SegmentJob& job) const;
  Status finish(SegmentJob& job) const;
  MutableBox3 chunk_out(const SegmentJob& job, std::size_t k) const;
  ConstBox3 chunk_reference(const SegmentJob& job, std::size_t k) const;
  void add_special(const SegmentJob& job, std::size_t k, MutableBox3& box) const;
  void list_holes(const SegmentJob& job, Vector<Hole>& holes) const;

  const Header& header_;
  const SegmentLayout& layout_;
  LevelTarget target_;
  const ChunkDecoder* codec_;
  const ReferenceChunkDecoder* beside_;  ///< the same, where chunks may need a reference
  bool keep_going_;
  bool check_faults_ = false;
  TaskRunner& runner_;
  std::size_t element_bytes_;
  std::uint64_t hole_bits_;
  std::uint64_t mask_limit_;
  BufferPool scratch_;
  ChunkBatch* batch_ = nullptr;
  ChunkProgress* progress_ = nullptr;
};

}  // namespace quern

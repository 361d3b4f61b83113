// Encodes runs of segments: masks, chunks, assembly, each stage in parallel. Bytes do not depend on how many segments
// make a batch. Memory is allocated for the first batch and reused.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/execution.h>
#include <quern/memory.h>

#include "libcompress/core/buffer.h"
#include "libcompress/format/grid/level_table.h"
#include "libcompress/format/grid/segment.h"
#include "libcompress/pipeline/encode/encode_batch.h"
#include "libcompress/pipeline/encode/setup.h"
#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/segment_coder.h"

namespace quern {

class BatchEncoder final : public SegmentEncoder {
 public:
  /// Setup and options outlive the encoder.
  BatchEncoder(const StreamSetup& setup, const CompressOptions& options, TaskRunner& runner);

  /// Lets another encode chunks first. It outlives the encoder.
  void encode_first_by(EncodeBatch* batch) { batch_ = batch; }

  void report_to(ChunkProgress* progress) override { progress_ = progress; }
  std::uint64_t bytes_per_segment() const override;
  std::uint64_t scratch_bytes() const override;
  std::uint64_t wanted_segments() const override { return runner_.width(); }  // one a thread keeps the mask stage busy

  Status encode(std::uint64_t first, std::size_t count, const ArrayWindow& window) override;

  std::span<const std::uint8_t> segment_bytes(std::size_t i) const override { return slots_[i].out; }
  std::uint64_t masked_elems(std::size_t i) const override { return slots_[i].mask.masked; }
  std::uint64_t raw_chunks(std::size_t i) const override;

 private:
  struct Slot {
    kernels::ScanCounts scan;
    mask::SegmentMask mask;
    Vector<std::uint8_t> mask_bytes;
    AlignedBuffer copy;    // working copy of the segment, when it holds special values
    AlignedBuffer chunks;  // one place for each chunk's bytes
    std::array<ChunkPiece, kMaxSegmentChunks> pieces;
    std::array<bool, kMaxSegmentChunks> all_masked{};
    std::array<bool, kMaxSegmentChunks> encoded{};  // by the batch
    std::array<LevelCuts, kMaxSegmentChunks> cuts;  // when there are level tables
    Vector<std::uint8_t> level_table;
    std::size_t count = 0;
    Vector<std::uint8_t> out;
  };

  ConstBox3 user_box(const GridBox& box, const ArrayWindow& window) const;
  ConstBox3 reference_box(const GridBox& box) const;
  std::span<std::uint8_t> chunk_place(Slot& slot, std::size_t k) const;
  Status scan_values(std::uint64_t first, std::size_t count, const ArrayWindow& window);
  Status find_mask(Slot& slot, std::uint64_t segment, const ArrayWindow& window) const;
  void mark_masked_chunks(Slot& slot, std::uint64_t segment) const;
  ConstBox3 chunk_input(const Slot& slot, std::uint64_t segment, std::size_t k, const ArrayWindow& window) const;
  Status encode_by_batch(std::uint64_t first, std::size_t count, const ArrayWindow& window);
  Status encode_chunk(Slot& slot, std::uint64_t segment, std::size_t k, const ArrayWindow& window);
  Status keep_coded(Slot& slot, std::uint64_t segment, std::size_t k, std::size_t bytes,
                    const ArrayWindow& window) const;
  Status cut_levels(Slot& slot, std::size_t k, const GridBox& box) const;
  void store_raw(Slot& slot, std::uint64_t segment, std::size_t k, const ArrayWindow& window) const;
  Status assemble(Slot& slot, std::uint64_t segment, const ArrayWindow& window) const;
  Status assemble_without_faults(Slot& slot, std::uint64_t segment, const ArrayWindow& window);
  Status encode_otherwise(Slot& slot, std::uint64_t segment, const ArrayWindow& window);
  Status find_faults(Slot& slot, std::uint64_t segment, const ArrayWindow& window);
  Status find_mask_fault(Slot& slot, std::uint64_t segment, std::span<const std::uint8_t> mask,
                         const ArrayWindow& window) const;

  const StreamSetup& setup_;
  const CompressOptions& options_;
  TaskRunner& runner_;
  std::size_t element_bytes_;
  std::size_t place_bytes_;
  BufferPool scratch_;
  Vector<Slot> slots_;
  EncodeBatch* batch_ = nullptr;
  ChunkProgress* progress_ = nullptr;
};

}  // namespace quern

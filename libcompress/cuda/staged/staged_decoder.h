// Decodes segments to arrays in host memory on a device, two lanes taking turns as in StagedEncoder. Whatever the
// device finds wrong is looked at again by the host, which names it.
#pragma once

#include <cstdint>
#include <span>

#include <quern/compress.h>
#include <quern/execution.h>
#include <quern/memory.h>

#include "kernels/mask/cuda/entry_points.h"
#include "libcompress/cuda/staged/double_buffer.h"
#include "libcompress/cuda/staged/staging_pool.h"
#include "libcompress/cuda/stream/segment_tables.h"
#include "libcompress/device/chunk_kernels.h"
#include "libcompress/pipeline/decode/batch_decoder.h"
#include "libcompress/pipeline/segment_coder.h"

namespace quern::cuda {

class StagedDecoder final : public SegmentDecoder {
 public:
  /// All outlive the decoder. The kernels serve the codec.
  StagedDecoder(const Header& header, const SegmentLayout& layout, const ChunkDecoder& codec, TaskRunner& runner,
                const ChunkKernels& kernels, LanePool& pool, int device);
  ~StagedDecoder() override;

  std::uint64_t bytes_per_segment() const override { return host_.bytes_per_segment(); }
  std::uint64_t scratch_bytes() const override;
  std::uint64_t wanted_segments() const override { return DoubleBuffer<Lane>::kSlots * kLaneSegments; }

  Status decode(std::span<SegmentJob> jobs, Vector<Hole>& holes) override;

 private:
  static constexpr std::uint64_t kLaneSegments = 8;

  /// A lane and the segments under way in it.
  struct Lane : StagingLane {
    std::span<SegmentJob> jobs;
    std::uint64_t begin = 0;  ///< first element of the window
  };

  Status open();
  bool can_stage(std::span<const SegmentJob> jobs) const;
  Status submit(Lane& lane, std::span<SegmentJob> jobs);
  Status enqueue(Lane& lane, std::uint64_t stream_bytes, std::uint64_t values_bytes);
  /// The jobs' values go to their places; `good` tells whether the device found nothing wrong.
  Status harvest(Lane& lane, bool& good);
  void deliver(const Lane& lane, std::size_t i) const;

  const Header& header_;
  const SegmentLayout& layout_;
  const ChunkDecoder& codec_;
  TaskRunner& runner_;
  const ChunkKernels& kernels_;
  LanePool& pool_;
  int device_;
  BatchDecoder host_;
  std::size_t element_bytes_;
  std::uint64_t window_bytes_ = 0;
  std::uint64_t stream_bytes_ = 0;

  Workspace workspace_;
  SegmentTables tables_;
  Part<kernels::StoredChunk> stored_;
  Part<std::uint32_t> damaged_;
  Part<std::uint8_t> decoding_;
  kernels::MaskWorkers mask_workers_;
  Part<kernels::RestoreJob> mask_jobs_;
  Part<kernels::MaskDamage> mask_damage_;
  Part<std::uint8_t> mask_memory_;
  Part<std::uint8_t> values_;
  Part<std::uint8_t> bytes_;

  DoubleBuffer<Lane> lanes_;
  bool open_ = false;
};

}  // namespace quern::cuda

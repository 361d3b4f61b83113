// Encodes segments of arrays in host memory on a device: two lanes take turns, so that one's copies run beside the
// other's kernels.
#pragma once

#include <cstdint>
#include <span>

#include <quern/compress.h>
#include <quern/execution.h>
#include <quern/memory.h>

#include "libcompress/core/buffer.h"
#include "libcompress/cuda/staged/double_buffer.h"
#include "libcompress/cuda/staged/staged_masks.h"
#include "libcompress/cuda/staged/staging_pool.h"
#include "libcompress/cuda/stream/segment_tables.h"
#include "libcompress/device/chunk_kernels.h"
#include "libcompress/pipeline/encode/setup.h"
#include "libcompress/pipeline/segment_coder.h"

namespace quern::cuda {

class StagedEncoder final : public SegmentEncoder {
 public:
  /// All outlive the encoder. The codec's kernels serve the setup's encoder.
  StagedEncoder(const StreamSetup& setup, const CompressOptions& options, TaskRunner& runner,
                const ChunkKernels& kernels, LanePool& pool, int device);
  ~StagedEncoder() override;

  std::uint64_t bytes_per_segment() const override;
  std::uint64_t scratch_bytes() const override;
  std::uint64_t wanted_segments() const override { return DoubleBuffer<Lane>::kSlots * kLaneSegments; }

  Status encode(std::uint64_t first, std::size_t count, const ArrayWindow& window) override;

  std::span<const std::uint8_t> segment_bytes(std::size_t i) const override { return results_[i].bytes; }
  std::uint64_t masked_elems(std::size_t i) const override { return results_[i].masked_elems; }
  std::uint64_t raw_chunks(std::size_t i) const override { return results_[i].raw_chunks; }

 private:
  static constexpr std::uint64_t kLaneSegments = 8;  // 16 MiB of values of most arrays

  struct Result {
    std::span<const std::uint8_t> bytes;
    std::uint64_t masked_elems = 0;
    std::uint64_t raw_chunks = 0;
  };

  /// A lane and the segments under way in it.
  struct Lane : StagingLane {
    std::uint64_t first = 0;
    std::size_t count = 0;
    std::size_t result = 0;  ///< number of the first one's result
  };

  Status open();
  Status submit(Lane& lane, std::uint64_t first, std::size_t count, const ArrayWindow& window);
  Status enqueue(Lane& lane, std::uint64_t values_bytes);
  Status harvest(Lane& lane);
  void keep(std::size_t i, std::span<const std::uint8_t> bytes);

  const StreamSetup& setup_;
  const CompressOptions& options_;
  TaskRunner& runner_;
  const ChunkKernels& kernels_;
  LanePool& pool_;
  int device_;
  std::size_t element_bytes_;
  std::uint64_t slot_bytes_ = 0;
  std::uint64_t window_bytes_ = 0;  // of a lane's segments
  std::uint64_t stream_bytes_ = 0;

  Workspace workspace_;
  SegmentTables tables_;
  StreamPlan plan_;  ///< of masks alone
  StagedMasks masks_;
  Part<std::uint32_t> sizes_;
  std::uint64_t parts_bytes_ = 0;
  Part<std::uint8_t> parts_;  ///< none if no chunk is encoded in parts
  Part<std::uint8_t*> targets_;
  Part<std::uint8_t> values_;
  Part<std::uint8_t> slots_;
  Part<std::uint8_t> bytes_;

  DoubleBuffer<Lane> lanes_;
  bool open_ = false;
  Vector<Result> results_;
  AlignedBuffer kept_;
  std::uint64_t kept_bytes_ = 0;
};

}  // namespace quern::cuda

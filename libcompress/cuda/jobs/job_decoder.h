// Decodes segments whose chunks a host takes apart and a device decodes: segments are checked and masks are read by
// threads, as without a device; chunks travel as jobs, two lanes taking turns; what the device leaves is decoded by
// threads.
#pragma once

#include <cstdint>
#include <span>

#include <quern/device.h>
#include <quern/execution.h>
#include <quern/memory.h>

#include "libcompress/cuda/staged/double_buffer.h"
#include "libcompress/cuda/staged/staging_pool.h"
#include "libcompress/device/decode_kernels.h"
#include "libcompress/pipeline/decode/batch_decoder.h"
#include "libcompress/pipeline/decode/chunk_batch.h"
#include "libcompress/pipeline/segment_coder.h"

namespace quern::cuda {

class JobDecoder final : public SegmentDecoder, private ChunkBatch {
 public:
  /// All outlive the decoder. The kernels serve the codec.
  JobDecoder(const Header& header, const SegmentLayout& layout, const ChunkDecoder& codec, TaskRunner& runner,
             const JobKernels& kernels, LanePool& pool, const DeviceInfo& device);
  ~JobDecoder() override;

  std::uint64_t bytes_per_segment() const override { return host_.bytes_per_segment(); }
  std::uint64_t scratch_bytes() const override;
  std::uint64_t wanted_segments() const override;

  Status decode(std::span<SegmentJob> jobs, Vector<Hole>& holes) override;

 private:
  static constexpr std::uint64_t kLaneBytes = UINT64_C(256) << 20;  ///< of values
  static constexpr std::uint64_t kLaneChunks = 128;
  /// Of a job beside what its chunk takes twice. Larger ones have so many exceptions, or bands, that there is
  /// little to gain.
  static constexpr std::uint64_t kTableBytes = UINT64_C(1) << 19;

  /// A chunk's parts of a lane's memory on both sides.
  struct Place {
    std::uint64_t job = 0;
    std::uint64_t special = 0;
    std::uint64_t work = 0;
    std::uint64_t out = 0;
    std::uint64_t work_bytes = 0;
    bool has_job = false;  ///< else the host decodes it
  };
  /// A lane and the chunks under way in it: a wave.
  struct Lane : StagingLane {
    std::span<CheckedChunk> chunks;
    Vector<Place> places;         ///< of each chunk
    std::uint64_t in_bytes = 0;   ///< of jobs and classes
    std::uint64_t out_bytes = 0;  ///< of values; the results follow
  };

  Status decode_chunks(std::span<CheckedChunk> chunks) override;
  Status open();
  /// How many of the chunks make a wave.
  std::size_t wave(std::span<const CheckedChunk> chunks) const;
  /// The most that a job of a chunk of so many bytes may take.
  std::uint64_t job_room(std::uint64_t stored) const;
  Status prepare(Lane& lane);
  Status submit(Lane& lane);
  Status harvest(Lane& lane);
  /// Whether the device is told which of its elements are special.
  bool tells_special(const CheckedChunk& chunk) const;
  MutableBox3 dense_box(const CheckedChunk& chunk) const;

  const ChunkDecoder& codec_;
  TaskRunner& runner_;
  const JobKernels& kernels_;
  LanePool& pool_;
  int device_;
  std::size_t element_bytes_;
  std::uint64_t chunk_bytes_;  ///< values of a full chunk
  std::uint64_t lane_chunks_;  ///< that a wave has at most
  std::uint64_t wave_bytes_;   ///< that jobs of a wave have at most
  std::uint64_t segment_chunks_;
  BatchDecoder host_;
  DoubleBuffer<Lane> lanes_;
  bool open_ = false;
};

}  // namespace quern::cuda

// Encodes segments whose chunks a host and a device encode together: masks are found and segments assembled by threads,
// as without a device; chunks travel with a first job, more jobs follow, and bytes come back after the last
// one, two lanes taking turns; what the device leaves is encoded by threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <quern/compress.h>
#include <quern/device.h>
#include <quern/execution.h>
#include <quern/memory.h>

#include "libcompress/core/buffer.h"
#include "libcompress/cuda/staged/double_buffer.h"
#include "libcompress/cuda/staged/staging_pool.h"
#include "libcompress/device/encode_kernels.h"
#include "libcompress/pipeline/encode/batch_encoder.h"
#include "libcompress/pipeline/encode/encode_batch.h"
#include "libcompress/pipeline/encode/setup.h"

namespace quern::cuda {

class JobEncoder final : public SegmentEncoder, private EncodeBatch {
 public:
  /// All outlive the encoder. The kernels are those of the setup's encoder.
  JobEncoder(const StreamSetup& setup, const CompressOptions& options, TaskRunner& runner,
             const JobEncodeKernels& kernels, LanePool& pool, const DeviceInfo& device);
  ~JobEncoder() override;

  std::uint64_t bytes_per_segment() const override { return host_.bytes_per_segment(); }
  std::uint64_t scratch_bytes() const override;
  std::uint64_t wanted_segments() const override;

  Status encode(std::uint64_t first, std::size_t count, const ArrayWindow& window) override;

  std::span<const std::uint8_t> segment_bytes(std::size_t i) const override { return host_.segment_bytes(i); }
  std::uint64_t masked_elems(std::size_t i) const override { return host_.masked_elems(i); }
  std::uint64_t raw_chunks(std::size_t i) const override { return host_.raw_chunks(i); }

 private:
  static constexpr std::uint64_t kLaneBytes = UINT64_C(256) << 20;  ///< of values
  static constexpr std::uint64_t kLaneChunks = 128;

  /// A chunk under way, and its parts of a lane's device memory. Without an encoding the device has no part in it.
  struct ChunkCoding {
    std::unique_ptr<ChunkEncoding> encoding;
    EncodeStep step = EncodeStep::encode;  ///< what `job` is for
    Vector<std::uint8_t> job;
    std::uint64_t job_at = 0;
    std::uint64_t elements_at = 0;
    std::uint64_t special_at = 0;
    std::uint64_t work_at = 0;
    std::uint64_t result_at = 0;  ///< among the results
    std::uint64_t piece_at = 0;   ///< in `tables`: what comes back beside results
    std::uint64_t piece_bytes = 0;
  };
  /// A lane and the chunks under way in it.
  struct Lane : StagingLane {
    std::span<ChunkToEncode> chunks;
    Vector<ChunkCoding> codings;
    std::uint8_t* results = nullptr;
    std::uint64_t results_bytes = 0;
    std::uint8_t* later = nullptr;  ///< room of all jobs but the first, and their tasks
    std::uint8_t* base = nullptr;   ///< of the parts above
  };

  Status encode_chunks(std::span<ChunkToEncode> chunks) override;
  Status open();
  Status start(Lane& lane);
  Status submit_first(Lane& lane);
  /// From the results of all codings that are at `encode` to what each of them does next.
  Status advance(Lane& lane);
  /// Queues the jobs of all codings that are at that step, and their results.
  Status submit(Lane& lane, EncodeStep step);
  Status deliver(Lane& lane);
  Status finish(Lane& lane);
  /// Brings the pieces of all codings that have some back to `tables`, and waits. `from(coding)` is where a piece lies.
  template <class From>
  Status bring_back(Lane& lane, const From& from);
  static bool any_at(const Lane& lane, EncodeStep step);
  std::span<const std::uint8_t> result(const Lane& lane, const ChunkCoding& coding) const;
  static std::span<const std::uint8_t> piece(const Lane& lane, const ChunkCoding& coding);
  static kernels::EncodeTask task_of(const Lane& lane, const ChunkCoding& coding, std::uint8_t* job);
  /// The device has no more part in a chunk, which is `done`, `raw` or the host's.
  static void end(Lane& lane, std::size_t i, EncodeStep how);

  const StreamSetup& setup_;
  TaskRunner& runner_;
  const JobEncodeKernels& kernels_;
  LanePool& pool_;
  int device_;
  std::size_t element_bytes_;
  std::uint64_t chunk_bytes_;  ///< values of a full chunk
  EncodeRoom room_;            ///< of a full chunk
  std::uint64_t lane_chunks_;  ///< that a lane takes at most
  BatchEncoder host_;
  BufferPool scratch_;
  DoubleBuffer<Lane> lanes_;
  bool open_ = false;
};

}  // namespace quern::cuda

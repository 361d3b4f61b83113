// Writes one stream: header, batches of segments, trailer. Shared by the push encoder, the one-shot call and the
// searches.
#pragma once

#include <cstdint>
#include <memory>

#include <quern/compress.h>

#include "libcompress/format/frame/trailer.h"
#include "libcompress/pipeline/encode/setup.h"
#include "libcompress/pipeline/segment_coder.h"

namespace quern {

class StreamEncoder : public Allocated {
 public:
  /// Options, registry, runner and sink outlive the encoder. `held_bytes` is what the caller keeps in memory beside; it
  /// counts towards request.memory_limit.
  static Result<std::unique_ptr<StreamEncoder>> create(const SetupRequest& request, std::uint64_t held_bytes,
                                                       TaskRunner& runner, const ProgressCallback& progress,
                                                       ByteSink& sink);

  const SegmentLayout& layout() const { return setup_.layout; }
  const StreamSetup& setup() const { return setup_; }
  /// Segments of one batch.
  std::uint64_t batch_segments() const { return batch_; }
  /// Segments that keep it busy.
  std::uint64_t wanted_segments() const { return segment_encoder_->wanted_segments(); }
  /// Bytes the encoder itself needs for `segments` at a time.
  std::uint64_t memory_for(std::uint64_t segments) const {
    return segment_encoder_->scratch_bytes() + segments * segment_encoder_->bytes_per_segment();
  }
  /// Sets what the caller keeps in memory from now on; fails when not even one segment fits beside it.
  Status set_held_bytes(std::uint64_t held_bytes);

  /// Encodes and writes segments up to `end`; they follow those written before, and their elements are in the window.
  Status encode_until(std::uint64_t end, const ArrayWindow& window);
  /// Writes the trailer.
  Result<CompressReport> finish();

 private:
  StreamEncoder(const SetupRequest& request, TaskRunner& runner, const ProgressCallback& progress, ByteSink& sink)
      : request_(request), runner_(runner), progress_(progress), sink_(sink) {}

  Status use(StreamSetup setup);
  Result<bool> sample_saves_enough();
  Status write(std::span<const std::uint8_t> bytes);
  Status write_batch(std::uint64_t first, std::size_t count);
  Status encode_batch(std::uint64_t first, std::size_t count, const ArrayWindow& window);
  Status encode_checked(const ArrayWindow& window);

  SetupRequest request_;
  TaskRunner& runner_;
  const ProgressCallback& progress_;
  ByteSink& sink_;
  StreamSetup setup_;
  std::unique_ptr<SegmentEncoder> segment_encoder_;
  TrailerBuilder trailer_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t batch_ = 1;
  std::uint64_t next_ = 0;
  std::uint64_t elems_done_ = 0;
  bool header_written_ = false;
  CompressReport report_;
};

}  // namespace quern

// The decoder behind Decoder and decompress(): windows of bands for pulling, boxes of bands for regions.
#pragma once

#include <cstdint>
#include <memory>

#include <quern/compress.h>
#include <quern/memory.h>
#include <quern/references.h>

#include "libcompress/core/buffer.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/decode/segment_source.h"
#include "libcompress/pipeline/segment_coder.h"

namespace quern {

/// A run of elements, consecutive both in the grid's chunk row and in the region's output.
struct RegionPiece {
  std::uint64_t segment = 0;
  std::uint64_t k = 0;     ///< chunk within the segment
  std::uint64_t from = 0;  ///< element within the segment's box, C order
  std::uint64_t to = 0;    ///< element within the output
  std::uint64_t count = 0;
};

class StreamDecoder final : public Decoder {
 public:
  StreamDecoder(ByteSource& source, const Execution& execution, const DecompressOptions& options)
      : source_(source),
        options_(options),
        progress_(execution.progress),
        memory_limit_(execution.memory_limit),
        device_(execution.device),
        runner_(execution) {}

  /// Reads the header and opens the codec.
  Status start(const Registry& registry);
  /// What the stream was predicted from; null: nothing.
  const ReferenceId* reference() const { return beside_ != nullptr ? &beside_->reference() : nullptr; }
  /// The values of that: an array in memory, which outlives the decoder, or what another decoder gives. After start().
  Status follow(const ArrayView& values);
  Status follow(std::unique_ptr<StreamDecoder> earlier);

  const StreamInfo& info() const override { return info_; }
  const Shape& shape() const override { return target_.form.shape; }
  Result<std::size_t> pull(std::span<std::uint8_t> out) override;
  Status region(const Box& box, const MutableArrayView& out) override;
  const DecompressReport& report() const override { return report_; }

 private:
  Result<std::size_t> pull_bytes(std::span<std::uint8_t> out);
  /// Decodes whole bands straight to `data`, where the element `begin` lies at its start.
  Status decode_bands(std::uint64_t first, std::uint64_t end, std::uint8_t* data);
  Status fill_window();
  std::uint64_t segments_at_once(std::uint64_t held_bytes);
  /// What a segment in flight needs and what is needed beside, that of the earlier decoders included.
  std::uint64_t bytes_per_segment() const;
  std::uint64_t scratch_bytes() const;
  std::uint64_t bytes_fetched() const;
  /// Sets the references of jobs that are otherwise ready.
  Status give_references(std::span<SegmentJob> jobs);
  /// Decodes the same chunks of the same segments as the jobs want, as their references.
  Status decode_for(std::span<SegmentJob> later);
  Status need_memory(std::uint64_t bytes) const;
  MutableBox3 place(const GridBox& box, std::uint8_t* data, std::uint64_t begin) const;

  Status region_bytes(const Box& box, const MutableArrayView& out);
  Status deliver(Vector<RegionPiece>& pieces, std::uint8_t* out);
  Status deliver_batch(std::span<const RegionPiece> pieces, std::uint8_t* out);

  ByteSource& source_;
  DecompressOptions options_;
  ProgressCallback progress_;
  std::uint64_t memory_limit_;
  Device* device_;
  RunnerHandle runner_;

  Header header_;
  StreamInfo info_;
  SegmentLayout layout_;
  LevelTarget target_;
  std::size_t element_bytes_ = 1;
  std::unique_ptr<ChunkDecoder> codec_;
  std::unique_ptr<SegmentSource> segments_;
  std::unique_ptr<SegmentDecoder> batch_;
  Vector<SegmentJob> jobs_;

  AlignedBuffer window_;
  std::uint64_t window_at_ = 0;  // bytes of the window that were handed out
  std::uint64_t next_band_ = 0;
  std::uint64_t elems_done_ = 0;
  bool finished_ = false;
  Status failed_;
  Vector<AlignedBuffer> region_boxes_;
  const ReferenceChunkDecoder* beside_ = nullptr;  ///< the codec, where the stream was predicted
  ArrayView values_;                               ///< of what it was predicted from, or:
  std::unique_ptr<StreamDecoder> earlier_;
  DecompressReport report_;
};

/// What the header says, for callers.
StreamInfo describe(const Header& header, std::uint64_t header_bytes, const SegmentLayout& layout,
                    const Registry& registry);

}  // namespace quern

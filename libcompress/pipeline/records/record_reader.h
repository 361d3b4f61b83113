// The reader behind RecordReader::open(): heads and parts from the source in order, decoding on all threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <quern/records.h>

#include "libcompress/core/task_runner.h"
#include "libcompress/format/records/record_header.h"
#include "libcompress/format/records/record_segment.h"
#include "libcompress/pipeline/decode/stream_index.h"

namespace quern {

/// A part that was read and waits to be decoded.
struct PartToDecode {
  SectionPart part;
  PartEntry entry;
  std::span<const std::uint8_t> stored;  ///< in memory that outlives the task
  std::span<std::uint8_t> out;           ///< part.bytes
};

class StreamRecordReader final : public RecordReader {
 public:
  StreamRecordReader(ByteSource& source, const Execution& execution, std::uint64_t offset)
      : source_(source), memory_limit_(execution.memory_limit), start_(offset), runner_(execution) {}

  /// Reads header and index and opens the codec.
  Status start(const RecordRegistry& registry);

  const RecordInfo& info() const override { return info_; }
  std::uint64_t stream_bytes() const override { return index_.offsets.back() + index_.trailer_bytes; }
  Status read_items(std::size_t section, std::uint64_t first, std::uint64_t count,
                    std::span<std::uint8_t> out) override;
  Result<Vector<std::uint8_t>> read_string(std::size_t section, std::uint64_t segment) override;
  Result<Vector<StoredPart>> stored_parts(std::uint64_t segment) override;
  Result<RecordCheck> verify() override;

 private:
  struct ItemPart;

  Status open_codec(const RecordRegistry& registry);
  Status need_memory(std::uint64_t bytes) const;
  /// Exactly these bytes of the stream.
  Status fetch(std::uint64_t at, std::span<std::uint8_t> out);
  Result<RecordSegmentHead> read_head(std::uint64_t segment);
  SectionPart part_of(const PartEntry& entry, std::uint64_t segment) const;
  /// Memory that decoding a part takes beside its bytes in and out.
  std::uint64_t working_bytes(const PartEntry& entry) const;
  Status decode(const PartToDecode& task) const;

  Status read_item_parts(std::size_t section, std::uint64_t first, std::uint64_t last, Vector<ItemPart>& parts);
  Status read_item_part(ItemPart& part);
  Status deliver(ItemPart& part, std::uint64_t first, std::uint64_t end, std::span<std::uint8_t> out) const;

  Status verify_segment(std::uint64_t segment, RecordCheck& check);
  Status decode_all(const RecordSegmentHead& head, std::uint64_t segment, std::span<const std::uint8_t> bytes);

  ByteSource& source_;
  std::uint64_t memory_limit_;
  std::uint64_t start_;
  RunnerHandle runner_;
  RecordHeader header_;
  RecordInfo info_;
  StreamIndex index_;
  std::unique_ptr<RecordDecoder> codec_;
  Status no_codec_;  ///< why there is none; ok where none is needed
};

/// What the header says, for callers.
RecordInfo describe_records(const RecordHeader& header, std::uint64_t header_bytes, const RecordRegistry& registry);

}  // namespace quern

// Records: many items with several attributes each, such as the points of scans or the tensors of a model. A record set
// is a list of named sections; the stream is docs/format-records.md.
//   RecordCodec        what a codec for records offers, beside ArrayCodec for dense arrays
//   compress_records() a set in memory to a stream
//   RecordReader       any items of any section from a stream
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/dtype.h>
#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>
#include <quern/stream_io.h>

namespace quern {

/// What a section holds. The numeric values are stored in streams.
enum class SectionForm : std::uint8_t {
  values = 1,  ///< the same number of elements for each item
  bytes = 2,   ///< for each segment a string of bytes, of any length
};

/// One section of a record set, without its data.
struct RecordSection {
  String name;  ///< UTF-8, 1 to 255 bytes, without control characters; no two sections have the same
  SectionForm form = SectionForm::values;
  std::uint16_t tag = 0;  ///< what the section is for, by agreement of those who write and read it
  // Of values alone:
  DType dtype = DType::f32;
  std::uint64_t items = 0;       ///< the first items of the set have it: at most as many as the set
  std::uint64_t item_elems = 1;  ///< elements of an item, at least 1
  ErrorBound requested;          ///< lossless, abs, rel or pwrel
  EnforcedBound enforced;
  std::optional<ValueRange> range;  ///< of values, when it was needed

  /// Bytes of one item; 0 of a byte section.
  constexpr std::uint64_t item_bytes() const {
    return form == SectionForm::values ? item_elems * dtype_bytes(dtype) : 0;
  }
};

/// What the header of a stream of records says.
struct RecordLayout {
  std::uint64_t items = 0;
  std::uint64_t segment_items = 1;  ///< of every segment but the last
  Vector<RecordSection> sections;
  /// Items of each frame, such as one sweep of a scanner; they follow each other. Empty: the set is not cut in frames.
  Vector<std::uint64_t> frames;

  std::uint64_t segments() const { return items / segment_items + (items % segment_items != 0 ? 1 : 0); }
  /// Items that a section of values has in a segment; 0: it has no part there.
  std::uint64_t part_items(std::size_t section, std::uint64_t segment) const;
  /// Whether the section has a part in the segment.
  bool has_part(std::size_t section, std::uint64_t segment) const {
    return sections[section].form == SectionForm::bytes || part_items(section, segment) > 0;
  }
  const RecordSection* by_name(std::string_view name) const;
};

/// The part of a section that lies in one segment: what codecs work on.
struct SectionPart {
  const RecordSection* section = nullptr;
  std::size_t index = 0;      ///< of the section
  std::uint64_t segment = 0;  ///< its number
  std::uint64_t items = 0;    ///< 0 of a byte section
  std::uint64_t bytes = 0;    ///< of the values, or of the string of bytes
};

/// What a plan is made from; the pointers' targets outlive the call.
struct RecordPlanRequest {
  const RecordLayout* layout = nullptr;
  /// Values of each section, all of them; strings of bytes of a byte section's first segment.
  std::span<const std::span<const std::uint8_t>> data;
  TaskRunner* runner = nullptr;  ///< never null; the plan does not depend on it
  Settings settings;
};

/// Encodes parts of sections. Made once a stream; `encode` may be called from several threads at once.
class RecordEncoder : public Allocated {
 public:
  virtual ~RecordEncoder() = default;
  /// Stored in the header; with the header's sections, everything that a decoder needs.
  virtual std::span<const std::uint8_t> params() const = 0;
  /// Writes the part's bytes to the start of `out` and returns their count; 0 when they do not fit, and then the part
  /// is stored as it is. `out` is smaller than the part. The same input gives the same bytes.
  virtual Result<std::size_t> encode(const SectionPart& part, std::span<const std::uint8_t> in,
                                     std::span<std::uint8_t> out) const = 0;
  /// Memory that one call of `encode` takes beside its arguments, for a part of so many bytes, at most.
  virtual std::uint64_t working_bytes(std::uint64_t part_bytes) const = 0;
};

/// Decodes parts of sections. Input bytes are hostile: `decode` fills `out` (part.bytes of them) or returns a Status,
/// and never reads or writes out of bounds. May be called from several threads at once.
class RecordDecoder : public Allocated {
 public:
  virtual ~RecordDecoder() = default;
  virtual Status decode(const SectionPart& part, std::span<const std::uint8_t> in,
                        std::span<std::uint8_t> out) const = 0;
  /// Memory that one call of `decode` takes beside its arguments, for a part of so many bytes, at most.
  virtual std::uint64_t working_bytes(std::uint64_t part_bytes) const = 0;
};

/// What a decoder knows before it sees a part.
struct RecordOpenRequest {
  const RecordLayout* layout = nullptr;
  std::uint16_t version = 0;
  std::span<const std::uint8_t> params;
};

class RecordCodec {
 public:
  virtual ~RecordCodec() = default;
  virtual const CodecInfo& info() const = 0;
  /// True when this codec codes such sections under their enforced bound. Others are stored as they are.
  virtual bool supports(const RecordSection& section) const = 0;
  virtual Result<std::unique_ptr<RecordEncoder>> plan(const RecordPlanRequest& request) const = 0;
  /// Validates params; fails with `corrupt` or `unsupported_version`.
  virtual Result<std::unique_ptr<RecordDecoder>> open(const RecordOpenRequest& request) const = 0;
};

/// Immutable list of codecs for records; owns neither them nor the list. Their ids are apart from those of arrays.
class RecordRegistry {
 public:
  explicit constexpr RecordRegistry(std::span<const RecordCodec* const> codecs) : codecs_(codecs) {}
  std::span<const RecordCodec* const> all() const { return codecs_; }
  const RecordCodec* by_name(std::string_view name) const;
  const RecordCodec* by_id(std::uint16_t id) const;

 private:
  std::span<const RecordCodec* const> codecs_;
};

/// Every codec for records of this build; there is none yet.
const RecordRegistry& builtin_record_codecs();

/// Data of one section, in the caller's memory.
struct SectionData {
  std::span<const std::uint8_t> values;  ///< of a section of values: items * item_bytes() bytes
  /// Of a byte section: the string of each segment, in order.
  std::span<const std::span<const std::uint8_t>> strings;
};

struct RecordOptions {
  /// Null: every part is stored as it is.
  const RecordCodec* codec = nullptr;
  Settings settings;
  Vector<std::uint8_t> metadata;  ///< free bytes, as CompressOptions::metadata
};

struct RecordReport {
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  std::uint64_t parts = 0;
  std::uint64_t raw_parts = 0;  ///< stored as they are
  RecordLayout layout;          ///< with the bounds that are enforced
};

/// Compresses a record set. `layout` says items, segments, sections and their requested bounds; the enforced ones are
/// worked out here, those of rel from the exact range. `data` has one entry a section. Bytes do not depend on threads
/// or the memory limit.
Result<RecordReport> compress_records(const RecordLayout& layout, std::span<const SectionData> data,
                                      const RecordOptions& options, const Execution& execution, ByteSink& sink);

/// What is known of a stream of records from its header.
struct RecordInfo {
  RecordLayout layout;
  std::uint8_t format_major = 0;
  std::uint8_t format_minor = 0;
  std::uint16_t codec_id = 0;
  std::uint16_t codec_version = 0;
  std::string codec_name;  ///< "stored"; "unknown" when the registry does not have it
  Vector<std::uint8_t> metadata;
  std::uint64_t header_bytes = 0;
};

/// What a segment stores of a section.
struct StoredPart {
  std::uint64_t segment = 0;
  std::size_t section = 0;
  std::uint64_t bytes = 0;         ///< of the values or the string
  std::uint64_t stored_bytes = 0;  ///< in the stream
  bool is_raw = false;
};

/// What RecordReader::verify() found.
struct RecordCheck {
  std::uint64_t parts = 0;
  std::uint64_t raw_parts = 0;
  bool decoded = false;  ///< false: the codec is not in this build, and coded parts were not decoded
  /// By section: bytes of the values or strings, and stored ones.
  Vector<std::uint64_t> section_bytes;
  Vector<std::uint64_t> section_stored_bytes;
};

/// Reads items of sections from a source that can seek. A codec that the registry does not have is an error only where
/// a coded part has to be decoded.
class RecordReader : public Allocated {
 public:
  /// Reads and checks the header of the stream that begins at `offset`, and the index in its trailer. Source and
  /// registry outlive the reader.
  static Result<std::unique_ptr<RecordReader>> open(ByteSource& source, const RecordRegistry& registry,
                                                    const Execution& execution, std::uint64_t offset = 0);
  virtual ~RecordReader() = default;
  virtual const RecordInfo& info() const = 0;
  /// Bytes of the whole stream.
  virtual std::uint64_t stream_bytes() const = 0;
  /// Items [first, first + count) of a section of values; `out` has count * item_bytes() bytes. Reads of the segments
  /// that hold them their heads and the section's part.
  virtual Status read_items(std::size_t section, std::uint64_t first, std::uint64_t count,
                            std::span<std::uint8_t> out) = 0;
  /// The string of a byte section in a segment.
  virtual Result<Vector<std::uint8_t>> read_string(std::size_t section, std::uint64_t segment) = 0;
  /// What segments store, from their heads alone.
  virtual Result<Vector<StoredPart>> stored_parts(std::uint64_t segment) = 0;
  /// Reads every byte, checks all checksums, and decodes every part that the registry has a codec for.
  virtual Result<RecordCheck> verify() = 0;
};

/// Header only; safe on any bytes.
Result<RecordInfo> inspect_records(ByteSource& source, const RecordRegistry& registry);
/// Whether a stream begins at the source's position whose payload is records. Fails as inspect() does.
Result<bool> holds_records(ByteSource& source);

}  // namespace quern

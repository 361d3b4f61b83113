// Record sets to streams: plan, header, segments in batches, trailer. Tasks are parts of sections; what they write does
// not depend on their order, on threads or on the size of a batch.
#include <algorithm>
#include <new>

#include <quern/records.h>

#include "libcompress/core/run_tasks.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/format/frame/header_bytes.h"
#include "libcompress/format/frame/trailer.h"
#include "libcompress/format/records/limits.h"
#include "libcompress/format/records/record_header.h"
#include "libcompress/format/records/record_segment.h"
#include "libcompress/pipeline/records/record_bounds.h"
#include "libcompress/pipeline/records/record_parts.h"

namespace quern {
namespace {

constexpr std::uint16_t kStoredVersion = 1;
/// Parts of a batch for each task that may run at once: enough that no thread waits for the slowest.
constexpr std::size_t kPartsPerThread = 4;

Status check_data(const RecordLayout& layout, std::span<const SectionData> data) {
  if (data.size() != layout.sections.size())
    return Status(StatusCode::invalid_argument, "{0} sections were described and the data of {1} given",
                  static_cast<std::int64_t>(layout.sections.size()), static_cast<std::int64_t>(data.size()));
  for (std::size_t i = 0; i < data.size(); ++i) {
    const RecordSection& section = layout.sections[i];
    const auto number = static_cast<std::int64_t>(i);
    if (section.form == SectionForm::values) {
      if (data[i].values.size() != section.items * section.item_bytes())
        return Status(StatusCode::invalid_argument, "section {0}: its values have {1} bytes, not those of its items",
                      number, static_cast<std::int64_t>(data[i].values.size()));
      continue;
    }
    if (data[i].strings.size() != layout.segments())
      return Status(StatusCode::invalid_argument, "section {0}: there are {1} strings of bytes, not one a segment",
                    number, static_cast<std::int64_t>(data[i].strings.size()));
    for (const auto& text : data[i].strings)
      if (text.size() > kMaxStringBytes)
        return Status(StatusCode::invalid_argument, "section {0}: a string has {1} bytes, more than a segment takes",
                      number, static_cast<std::int64_t>(text.size()));
  }
  return {};
}

/// A part on its way into a segment.
struct EncodedPart {
  SectionPart part;
  std::span<const std::uint8_t> in;
  bool is_coded = false;     ///< by the codec; else it is stored as it is
  Vector<std::uint8_t> out;  ///< room for less than the part
  std::size_t stored = 0;

  PartPiece piece() const {
    return {!is_coded, is_coded ? std::span<const std::uint8_t>(out).first(stored) : in, part.bytes};
  }
};

class RecordStream {
 public:
  RecordStream(std::span<const SectionData> data, const RecordOptions& options, const Execution& execution,
               TaskRunner& runner, ByteSink& sink)
      : data_(data), options_(options), execution_(execution), runner_(runner), sink_(sink) {}

  Status start(const RecordLayout& layout) {
    header_.layout = layout;
    QUERN_RETURN_IF_ERROR(argument_status_of(fault_in_layout(layout)));
    QUERN_RETURN_IF_ERROR(check_data(layout, data_));
    QUERN_RETURN_IF_ERROR(resolve_record_bounds(header_.layout, data_, runner_));
    header_.writer = this_writer();
    header_.codec_id = kStoredCodecId;
    header_.codec_version = kStoredVersion;
    header_.metadata = options_.metadata;
    if (options_.codec != nullptr) QUERN_RETURN_IF_ERROR(plan());
    QUERN_ASSIGN_OR_RETURN(const auto bytes, serialize_record_header(header_));
    return write(bytes);
  }

  Status write_segments() {
    const std::uint64_t segments = header_.layout.segments();
    for (std::uint64_t next = 0; next < segments;) {
      QUERN_ASSIGN_OR_RETURN(const std::uint64_t end, batch_end(next));
      QUERN_RETURN_IF_ERROR(encode_batch(next, end));
      QUERN_RETURN_IF_ERROR(write_batch(next, end));
      next = end;
      const std::uint64_t done = std::min(header_.layout.items, next * header_.layout.segment_items);
      if (execution_.progress && !execution_.progress(done, header_.layout.items))
        return Status(StatusCode::cancelled, "cancelled after {0} items", static_cast<std::int64_t>(done));
    }
    return {};
  }

  Result<RecordReport> finish() {
    QUERN_RETURN_IF_ERROR(write(trailer_.finish(header_.checksum, report_.output_bytes)));
    report_.layout = std::move(header_.layout);
    return std::move(report_);
  }

 private:
  Status plan() {
    Vector<std::span<const std::uint8_t>> planned_on;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const bool has_string = header_.layout.sections[i].form == SectionForm::bytes && !data_[i].strings.empty();
      planned_on.push_back(has_string ? data_[i].strings.front() : data_[i].values);
    }
    QUERN_ASSIGN_OR_RETURN(encoder_, options_.codec->plan({&header_.layout, planned_on, &runner_, options_.settings}));
    header_.codec_id = options_.codec->info().id;
    header_.codec_version = options_.codec->info().version;
    header_.params.assign(encoder_->params().begin(), encoder_->params().end());
    return {};
  }

  SectionPart part_of(std::size_t section, std::uint64_t segment) const {
    const RecordLayout& layout = header_.layout;
    SectionPart part{&layout.sections[section], section, segment, 0, 0};
    if (part.section->form == SectionForm::bytes) {
      part.bytes = data_[section].strings[segment].size();
    } else {
      part.items = layout.part_items(section, segment);
      part.bytes = part.items * part.section->item_bytes();
    }
    return part;
  }

  std::span<const std::uint8_t> input_of(const SectionPart& part) const {
    const SectionData& data = data_[part.index];
    if (part.section->form == SectionForm::bytes) return data.strings[part.segment];
    const std::uint64_t first = part.segment * header_.layout.segment_items * part.section->item_bytes();
    return data.values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(part.bytes));
  }

  /// Memory of a segment until it is written: coded parts, the segment put together, and what encoding takes.
  std::uint64_t segment_memory(std::uint64_t segment, std::size_t& parts) const {
    std::uint64_t bytes = record_head_bytes(header_.layout, segment) + kRecordChecksumBytes;
    parts = 0;
    for (std::size_t i = 0; i < header_.layout.sections.size(); ++i) {
      if (!header_.layout.has_part(i, segment)) continue;
      const std::uint64_t part = part_of(i, segment).bytes;
      bytes += 2 * part + sizeof(EncodedPart) + (encoder_ != nullptr ? encoder_->working_bytes(part) : 0);
      ++parts;
    }
    return bytes;
  }

  /// As many segments as keep all threads busy and fit into memory; one at least.
  Result<std::uint64_t> batch_end(std::uint64_t first) const {
    const std::size_t wanted = kPartsPerThread * runner_.width();
    std::uint64_t held = 0;
    std::size_t parts = 0;
    std::uint64_t end = first;
    while (end < header_.layout.segments() && parts < wanted) {
      std::size_t more = 0;
      const std::uint64_t bytes = segment_memory(end, more);
      if (bytes > execution_.memory_limit - held) break;
      held += bytes;
      parts += more;
      ++end;
    }
    if (end > first) return end;
    std::size_t unused = 0;
    return Status(StatusCode::memory_limit, "{0} bytes are needed at least; the limit is {1}",
                  static_cast<std::int64_t>(segment_memory(first, unused)),
                  static_cast<std::int64_t>(execution_.memory_limit));
  }

  Status encode_batch(std::uint64_t first, std::uint64_t end) {
    parts_.clear();
    for (std::uint64_t segment = first; segment < end; ++segment)
      for (std::size_t i = 0; i < header_.layout.sections.size(); ++i)
        if (header_.layout.has_part(i, segment)) {
          EncodedPart& part = parts_.emplace_back();
          part.part = part_of(i, segment);
          part.in = input_of(part.part);
        }
    return run_tasks(runner_, parts_.size(), [&](std::size_t i) { return encode(parts_[i]); });
  }

  Status encode(EncodedPart& part) const {
    // A coded part is smaller than what it stands for.
    if (encoder_ == nullptr || part.in.size() < 2 || !options_.codec->supports(*part.part.section)) return {};
    part.out.resize(part.in.size() - 1);
    QUERN_ASSIGN_OR_RETURN(part.stored, encoder_->encode(part.part, part.in, part.out));
    if (part.stored > part.out.size()) return Status(StatusCode::internal, "the codec wrote more than it was given");
    part.is_coded = part.stored > 0;
    return {};
  }

  Status write_batch(std::uint64_t first, std::uint64_t end) {
    Vector<PartPiece> pieces;
    Vector<std::uint8_t> bytes;
    std::size_t at = 0;
    for (std::uint64_t segment = first; segment < end; ++segment) {
      pieces.clear();
      for (; at < parts_.size() && parts_[at].part.segment == segment; ++at) {
        pieces.push_back(parts_[at].piece());
        report_.input_bytes += parts_[at].part.bytes;
        report_.raw_parts += parts_[at].is_coded ? 0 : 1;
        ++report_.parts;
      }
      assemble_record_segment(header_.layout, {header_.checksum, segment}, pieces, bytes);
      QUERN_RETURN_IF_ERROR(write(bytes));
      trailer_.add(bytes.size());
    }
    return {};
  }

  Status write(std::span<const std::uint8_t> bytes) {
    QUERN_RETURN_IF_ERROR(sink_.write(bytes));
    report_.output_bytes += bytes.size();
    return {};
  }

  std::span<const SectionData> data_;
  const RecordOptions& options_;
  const Execution& execution_;
  TaskRunner& runner_;
  ByteSink& sink_;
  RecordHeader header_;
  std::unique_ptr<RecordEncoder> encoder_;
  Vector<EncodedPart> parts_;
  TrailerBuilder trailer_;
  RecordReport report_;
};

}  // namespace

Result<RecordReport> compress_records(const RecordLayout& layout, std::span<const SectionData> data,
                                      const RecordOptions& options, const Execution& execution, ByteSink& sink) {
  try {
    RunnerHandle runner(execution);
    RecordStream stream(data, options, execution, runner.get(), sink);
    QUERN_RETURN_IF_ERROR(stream.start(layout));
    QUERN_RETURN_IF_ERROR(stream.write_segments());
    return stream.finish();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern

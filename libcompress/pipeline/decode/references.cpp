// Streams that were predicted from an array: where its values come from.
#include <memory>
#include <new>
#include <utility>

#include <quern/steps.h>

#include "libcompress/format/frame/checksum.h"
#include "libcompress/pipeline/decode/decoder.h"
#include "libcompress/pipeline/decode/open_codec.h"

namespace quern {
namespace {

Status other_array(const ReferenceId& reference) {
  return Status(StatusCode::reference_missing,
                "the stream was predicted from the array whose values have the hash {0.x}; it is missing, or has other "
                "values now",
                static_cast<std::int64_t>(reference.hash));
}

bool is_same_grid(const ChunkGrid& a, const ChunkGrid& b) { return a.extents == b.extents && a.chunk == b.chunk; }

Result<std::unique_ptr<StreamDecoder>> start_decoder(ByteSource& source, const Registry& registry,
                                                     const Execution& execution, const DecompressOptions& options) {
  auto decoder = std::make_unique<StreamDecoder>(source, execution, options);
  QUERN_RETURN_IF_ERROR(decoder->start(registry));
  return decoder;
}

}  // namespace

Status StreamDecoder::follow(const ArrayView& values) {
  if (beside_ == nullptr) return {};
  if (values.dtype != header_.dtype || !(values.shape == header_.shape)) return other_array(*reference());
  // A view of nothing has rank 0, and so one element.
  if (values.data == nullptr && values.bytes() != 0) return other_array(*reference());
  if (!options_.keep_going && hash_values(values) != reference()->hash) return other_array(*reference());
  values_ = values;
  return {};
}

Status StreamDecoder::follow(std::unique_ptr<StreamDecoder> earlier) {
  if (beside_ == nullptr)
    return Status(StatusCode::invalid_argument, "a step that stands alone was given steps before it");
  if (earlier->header_.dtype != header_.dtype || !(earlier->header_.shape == header_.shape) ||
      !is_same_grid(earlier->header_.grid, header_.grid))
    return other_array(*reference());
  earlier_ = std::move(earlier);
  return {};
}

std::uint64_t StreamDecoder::bytes_per_segment() const {
  if (earlier_ == nullptr) return batch_->bytes_per_segment();
  return batch_->bytes_per_segment() + layout_.max_segment_elems() * element_bytes_ + earlier_->bytes_per_segment();
}

std::uint64_t StreamDecoder::scratch_bytes() const {
  return batch_->scratch_bytes() + (earlier_ != nullptr ? earlier_->scratch_bytes() : 0);
}

std::uint64_t StreamDecoder::bytes_fetched() const {
  return segments_->bytes_fetched() + (earlier_ != nullptr ? earlier_->bytes_fetched() : 0);
}

Status StreamDecoder::give_references(std::span<SegmentJob> jobs) {
  for (SegmentJob& job : jobs) job.reference = {};
  if (earlier_ != nullptr) return earlier_->decode_for(jobs);
  if (values_.data == nullptr) return {};
  const auto& extents = layout_.grid().extents;
  for (SegmentJob& job : jobs) {
    const GridBox box = layout_.segment_box(job.segment);
    job.reference = {static_cast<const std::uint8_t*>(values_.data) + layout_.flat(box.begin) * element_bytes_,
                     box.extents,
                     {extents[1] * extents[2], extents[2]}};
  }
  return {};
}

Status StreamDecoder::decode_for(std::span<SegmentJob> later) {
  if (jobs_.size() < later.size()) jobs_.resize(later.size());
  if (region_boxes_.size() < later.size()) region_boxes_.resize(later.size());
  for (std::size_t i = 0; i < later.size(); ++i) {
    SegmentJob& job = jobs_[i];
    job.segment = later[i].segment;
    job.wanted = later[i].wanted;
    const GridBox box = layout_.segment_box(job.segment);
    QUERN_RETURN_IF_ERROR(region_boxes_[i].resize(box.elems() * element_bytes_));
    job.out = {region_boxes_[i].data(), box.extents, {box.extents[1] * box.extents[2], box.extents[2]}};
    job.read_status = {};
    const Status read = segments_->read_at(job);
    if (!read.ok() && !options_.keep_going) return read;
    if (!read.ok()) job.read_status = read;
    later[i].reference = {job.out.data, box.extents, job.out.strides};
  }
  const std::span<SegmentJob> jobs{jobs_.data(), later.size()};
  QUERN_RETURN_IF_ERROR(give_references(jobs));
  QUERN_RETURN_IF_ERROR(batch_->decode(jobs, report_.holes));
  // A chain has many decoders, which work one after the other.
  batch_->give_back();
  return {};
}

std::uint64_t hash_values(const ArrayView& array) {
  return checksum64({static_cast<const std::uint8_t*>(array.data), static_cast<std::size_t>(array.bytes())});
}

Result<std::optional<ReferenceId>> inspect_reference(ByteSource& source, const Registry& registry) {
  try {
    QUERN_ASSIGN_OR_RETURN(const ReadHeader read, read_header(source));
    const Header& header = read.header;
    if ((header.must_understand & kReferences) == 0) return std::optional<ReferenceId>();
    QUERN_ASSIGN_OR_RETURN(const auto decoder, open_codec(header, registry));
    return std::optional<ReferenceId>(dynamic_cast<const ReferenceChunkDecoder&>(*decoder).reference());
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

Result<std::unique_ptr<Decoder>> open_step_beside(ByteSource& source, const ArrayView& values, const Registry& registry,
                                                  const Execution& execution, const DecompressOptions& options) {
  try {
    QUERN_ASSIGN_OR_RETURN(auto decoder, start_decoder(source, registry, execution, options));
    QUERN_RETURN_IF_ERROR(decoder->follow(values));
    return std::unique_ptr<Decoder>(std::move(decoder));
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

Result<std::unique_ptr<Decoder>> open_step_chain(std::span<ByteSource* const> steps, const Registry& registry,
                                                 const Execution& execution, const DecompressOptions& options) {
  if (steps.empty()) return Status(StatusCode::invalid_argument, "a chain has at least one step");
  try {
    // Earlier steps are read by their trailers alone, and nobody is told of their chunks.
    DecompressOptions earlier_options;
    earlier_options.keep_going = options.keep_going;
    Execution quiet = execution;
    quiet.progress = {};
    quiet.device = nullptr;
    std::unique_ptr<StreamDecoder> decoder;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const bool last = i + 1 == steps.size();
      QUERN_ASSIGN_OR_RETURN(
          auto next, start_decoder(*steps[i], registry, last ? execution : quiet, last ? options : earlier_options));
      if (i > 0 && !last && next->reference() == nullptr) {
        QUERN_ASSIGN_OR_RETURN(const auto wanted, inspect_reference(*steps.back(), registry));
        if (wanted) return other_array(*wanted);
      }
      if (decoder != nullptr) QUERN_RETURN_IF_ERROR(next->follow(std::move(decoder)));
      if (i == 0 && next->reference() != nullptr) return other_array(*next->reference());
      decoder = std::move(next);
    }
    return std::unique_ptr<Decoder>(std::move(decoder));
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern

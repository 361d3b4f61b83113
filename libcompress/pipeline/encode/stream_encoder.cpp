// Batching, writing, and the promise that a stream is never larger than its values.
#include "libcompress/pipeline/encode/stream_encoder.h"

#include <algorithm>
#include <utility>

#include <quern/device.h>

#include "libcompress/format/grid/segment.h"
#include "libcompress/format/writer.h"
#include "libcompress/pipeline/encode/batch_encoder.h"
#include "libcompress/pipeline/pass_progress.h"

namespace quern {

Result<std::unique_ptr<StreamEncoder>> StreamEncoder::create(const SetupRequest& request, std::uint64_t held_bytes,
                                                             TaskRunner& runner, const ProgressCallback& progress,
                                                             ByteSink& sink) {
  std::unique_ptr<StreamEncoder> encoder(new StreamEncoder(request, runner, progress, sink));
  if (held_bytes > request.memory_limit)
    return Status(StatusCode::memory_limit, "{0} bytes are needed at least; the limit is {1}",
                  static_cast<std::int64_t>(held_bytes), static_cast<std::int64_t>(request.memory_limit));
  encoder->request_.memory_limit = request.memory_limit - held_bytes;
  const SetupRequest within = encoder->request_;
  encoder->request_.memory_limit = request.memory_limit;
  encoder->held_bytes_ = held_bytes;
  QUERN_ASSIGN_OR_RETURN(StreamSetup setup, make_setup(within, runner));
  QUERN_RETURN_IF_ERROR(encoder->use(std::move(setup)));
  if (encoder->setup_.must_save > 0 && encoder->layout().segments() > 1) {
    QUERN_ASSIGN_OR_RETURN(const bool enough, encoder->sample_saves_enough());
    if (!enough) {
      QUERN_ASSIGN_OR_RETURN(StreamSetup cautious, make_cautious_setup(within, encoder->setup_, runner));
      QUERN_RETURN_IF_ERROR(encoder->use(std::move(cautious)));
    }
  }
  encoder->request_.sample = {};
  return encoder;
}

// Many small chunks, as of narrow arrays: their tables take more than promise 5 grants an array that does not compress.
// No segment exceeds its worst case, so what the first segments save is saved for good. They are those that lie wholly
// in the sample, whatever the batch.
Result<bool> StreamEncoder::sample_saves_enough() {
  const SegmentLayout& layout = setup_.layout;
  const std::uint64_t elems = request_.sample.elems();
  std::uint64_t bands = 0;
  while (bands < layout.bands() && layout.band_begin(bands + 1) <= elems) ++bands;
  const std::uint64_t end = bands * layout.band_segments();
  const ArrayWindow window{static_cast<const std::uint8_t*>(request_.sample.data), 0};
  std::uint64_t saved = 0;
  for (std::uint64_t first = 0; first < end && saved < setup_.must_save; first += batch_) {
    const auto count = static_cast<std::size_t>(std::min(batch_, end - first));
    QUERN_RETURN_IF_ERROR(segment_encoder_->encode(first, count, window));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t most = layout.segment_box(first + i).elems() * dtype_bytes(layout.dtype()) +
                                 segment_framing_bytes(layout, layout.segment_chunks(first + i));
      saved += most - std::min<std::uint64_t>(most, segment_encoder_->segment_bytes(i).size());
    }
  }
  return saved >= setup_.must_save;
}

Status StreamEncoder::use(StreamSetup setup) {
  setup_ = std::move(setup);
  if (request_.device != nullptr && setup_.beside == nullptr) {
    QUERN_ASSIGN_OR_RETURN(segment_encoder_, request_.device->encoder(setup_, *request_.options, runner_));
    report_.on_device = segment_encoder_ != nullptr;
  }
  if (!report_.on_device) segment_encoder_ = std::make_unique<BatchEncoder>(setup_, *request_.options, runner_);
  return set_held_bytes(held_bytes_);
}

Status StreamEncoder::set_held_bytes(std::uint64_t held_bytes) {
  held_bytes_ = held_bytes;
  const std::uint64_t least = held_bytes_ + memory_for(1);
  if (least > request_.memory_limit)
    return Status(StatusCode::memory_limit, "{0} bytes are needed at least; the limit is {1}",
                  static_cast<std::int64_t>(least), static_cast<std::int64_t>(request_.memory_limit));
  const std::uint64_t wanted = wanted_segments();
  const std::uint64_t per_segment = std::max<std::uint64_t>(segment_encoder_->bytes_per_segment(), 1);
  const std::uint64_t possible = 1 + (request_.memory_limit - least) / per_segment;
  batch_ = std::clamp<std::uint64_t>(wanted, 1, possible);
  return {};
}

Status StreamEncoder::write(std::span<const std::uint8_t> bytes) {
  if (!header_written_) {
    QUERN_RETURN_IF_ERROR(sink_.write(setup_.header_bytes));
    header_written_ = true;
    report_.output_bytes += setup_.header_bytes.size();
  }
  if (bytes.empty()) return {};
  QUERN_RETURN_IF_ERROR(sink_.write(bytes));
  report_.output_bytes += bytes.size();
  return {};
}

Status StreamEncoder::write_batch(std::uint64_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bytes = segment_encoder_->segment_bytes(i);
    QUERN_RETURN_IF_ERROR(write(bytes));
    trailer_.add(bytes.size());
    report_.masked_elems += segment_encoder_->masked_elems(i);
    report_.raw_chunks += segment_encoder_->raw_chunks(i);
    report_.chunks += setup_.layout.segment_chunks(first + i);
    elems_done_ += setup_.layout.segment_box(first + i).elems();
  }
  if (progress_ && !progress_(elems_done_, request_.shape.elems()))
    return Status(StatusCode::cancelled, "cancelled after {0} elements", static_cast<std::int64_t>(elems_done_));
  return {};
}

// One segment whose worst case breaks promise 5: look at the outcome, and store the values raw if it really does.
Status StreamEncoder::encode_checked(const ArrayWindow& window) {
  QUERN_RETURN_IF_ERROR(encode_batch(0, 1, window));
  const std::uint64_t segment = segment_encoder_->segment_bytes(0).size();
  const std::uint64_t total = setup_.header_bytes.size() + segment + varint_bytes(segment) + kFooterBytes;
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t limit,
                         max_stream_bytes(request_.dtype, request_.shape, request_.options->metadata.size()));
  if (total <= limit) {
    next_ = 1;
    return write_batch(0, 1);
  }
  QUERN_ASSIGN_OR_RETURN(StreamSetup stored, make_stored_setup(request_));
  QUERN_RETURN_IF_ERROR(use(std::move(stored)));
  return encode_until(setup_.layout.segments(), window);
}

Status StreamEncoder::encode_batch(std::uint64_t first, std::size_t count, const ArrayWindow& window) {
  ChunkProgress chunks(progress_, elems_done_, request_.shape.elems());
  segment_encoder_->report_to(&chunks);
  const Status status = segment_encoder_->encode(first, count, window);
  segment_encoder_->report_to(nullptr);
  return status;
}

Status StreamEncoder::encode_until(std::uint64_t end, const ArrayWindow& window) {
  if (setup_.must_save > 0 && setup_.layout.segments() == 1 && next_ == 0 && end > 0) return encode_checked(window);
  while (next_ < end) {
    const auto count = static_cast<std::size_t>(std::min(batch_, end - next_));
    QUERN_RETURN_IF_ERROR(encode_batch(next_, count, window));
    QUERN_RETURN_IF_ERROR(write_batch(next_, count));
    next_ += count;
  }
  return {};
}

Result<CompressReport> StreamEncoder::finish() {
  QUERN_RETURN_IF_ERROR(write({}));
  QUERN_RETURN_IF_ERROR(write(trailer_.finish(setup_.header.checksum, report_.output_bytes)));
  report_.input_bytes = request_.shape.elems() * dtype_bytes(request_.dtype);
  report_.enforced = setup_.header.enforced;
  report_.range = setup_.header.range;
  report_.codec = setup_.codec_name;
  report_.codec_id = setup_.header.codec_id;
  return report_;
}

}  // namespace quern

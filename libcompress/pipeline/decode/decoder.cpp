// Opening streams, pulling elements, whole arrays.
#include "libcompress/pipeline/decode/decoder.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <quern/device.h>

#include "libcompress/format/records/record_header.h"
#include "libcompress/pipeline/decode/batch_decoder.h"
#include "libcompress/pipeline/decode/open_codec.h"
#include "libcompress/pipeline/pass_progress.h"

namespace quern {
namespace {

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

Status out_of_memory() { return Status(StatusCode::out_of_memory, "out of memory"); }

void describe_levels(const ChunkDecoder* codec, StreamInfo& info) {
  info.levels = level_shapes(codec);
  info.levels_are_means = !info.levels.empty() && codec->levels_are_means();
}

/// Bytes of a header that passes all checks, whatever the payload.
Result<std::uint64_t> check_header(ByteSource& source) {
  QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> bytes, read_header_bytes(source));
  const Status status = says_records(bytes) ? parse_record_header(bytes).status() : parse_header(bytes).status();
  QUERN_RETURN_IF_ERROR(status);
  return bytes.size();
}

}  // namespace

StreamInfo describe(const Header& header, std::uint64_t header_bytes, const SegmentLayout& layout,
                    const Registry& registry) {
  StreamInfo info;
  info.format_major = header.major;
  info.format_minor = header.minor;
  info.dtype = header.dtype;
  info.shape = header.shape;
  info.requested = header.requested;
  info.enforced = header.enforced;
  info.range = header.range;
  info.codec_id = header.codec_id;
  info.codec_version = header.codec_version;
  const ArrayCodec* codec = registry.by_id(header.codec_id);
  info.codec_name = header.codec_id == kStoredCodecId ? "stored" : codec != nullptr ? codec->info().name : "unknown";
  info.grid = header.grid;
  info.chunks = layout.chunks();
  info.segments = layout.segments();
  info.fill_bits = header.fill_bits;
  info.metadata = header.metadata;
  info.header_bytes = header_bytes;
  return info;
}

Status StreamDecoder::start(const Registry& registry) {
  if (options_.offset) {
    if (!source_.can_seek())
      return Status(StatusCode::invalid_argument, "an offset was given for a source that cannot seek");
    QUERN_RETURN_IF_ERROR(source_.seek(*options_.offset));
  }
  const std::uint64_t start = source_.position();
  QUERN_ASSIGN_OR_RETURN(ReadHeader read, read_header(source_));
  header_ = std::move(read.header);
  layout_ = SegmentLayout(header_.grid, header_.dtype, header_.has_level_tables());
  element_bytes_ = dtype_bytes(header_.dtype);
  info_ = describe(header_, read.bytes, layout_, registry);
  QUERN_ASSIGN_OR_RETURN(codec_, open_codec(header_, registry));
  describe_levels(codec_.get(), info_);
  beside_ = dynamic_cast<const ReferenceChunkDecoder*>(codec_.get());
  if (layout_.has_level_tables() && (info_.levels.empty() || info_.levels_are_means))
    return Status(StatusCode::corrupt, "the stream has tables of levels where its codec has no levels for them");
  target_ = LevelTarget::whole(header_.shape, layout_);
  if (options_.level > 0) {
    QUERN_ASSIGN_OR_RETURN(target_, LevelTarget::at(options_.level, codec_.get(), layout_));
  }
  segments_ = std::make_unique<SegmentSource>(source_, header_, start, read.bytes, layout_, options_, memory_limit_);
  if (options_.check_faults && (options_.level > 0 || (codec_ != nullptr && !codec_->can_find_faults())))
    return Status(StatusCode::unsupported, "hardware faults are looked for where codec lorenzo decodes an array");
  if (device_ != nullptr && codec_ != nullptr && beside_ == nullptr && !options_.keep_going && options_.level == 0 &&
      !options_.check_faults) {
    QUERN_ASSIGN_OR_RETURN(batch_, device_->decoder(header_, layout_, *codec_, runner_.get()));
    report_.on_device = batch_ != nullptr;
  }
  if (!report_.on_device) {
    auto batch =
        std::make_unique<BatchDecoder>(header_, layout_, target_, codec_.get(), options_.keep_going, runner_.get());
    if (options_.check_faults) batch->check_faults();
    batch_ = std::move(batch);
  }
  report_.input_bytes = report_.bytes_read = read.bytes;
  return {};
}

Status StreamDecoder::need_memory(std::uint64_t bytes) const {
  if (bytes <= memory_limit_) return {};
  return Status(StatusCode::memory_limit, "{0} bytes are needed at least; the limit is {1}", number(bytes),
                number(memory_limit_));
}

// At least one: what it needs has been checked.
std::uint64_t StreamDecoder::segments_at_once(std::uint64_t held_bytes) {
  const std::uint64_t per_segment = std::max<std::uint64_t>(bytes_per_segment(), 1);
  const std::uint64_t fixed = held_bytes + scratch_bytes();
  const std::uint64_t possible = memory_limit_ > fixed ? (memory_limit_ - fixed) / per_segment : 0;
  return std::clamp<std::uint64_t>(batch_->wanted_segments(), 1, std::max<std::uint64_t>(possible, 1));
}

MutableBox3 StreamDecoder::place(const GridBox& box, std::uint8_t* data, std::uint64_t begin) const {
  const auto& extents = target_.layout.grid().extents;
  return {data + (target_.layout.flat(box.begin) - begin) * element_bytes_,
          box.extents,
          {extents[1] * extents[2], extents[2]}};
}

Status StreamDecoder::decode_bands(std::uint64_t first, std::uint64_t end, std::uint8_t* data) {
  const SegmentLayout& layout = target_.layout;
  const std::uint64_t begin = layout.band_begin(first);
  const std::uint64_t last_segment = end * layout.band_segments();
  std::uint64_t segment = first * layout.band_segments();
  QUERN_RETURN_IF_ERROR(need_memory(window_.size() + scratch_bytes() + bytes_per_segment()));
  const std::uint64_t at_once = segments_at_once(window_.size());
  if (jobs_.size() < at_once) jobs_.resize(static_cast<std::size_t>(at_once));
  while (segment < last_segment) {
    const auto count = static_cast<std::size_t>(std::min(at_once, last_segment - segment));
    std::size_t read = 0;
    Status failed;
    ChunkProgress chunks(progress_, elems_done_, shape().elems());
    for (; read < count; ++read) {
      failed = segments_->read_next(jobs_[read]);
      if (!failed.ok()) break;
      const GridBox box = layout.segment_box(segment + read);
      jobs_[read].out = place(box, data, begin);
      jobs_[read].wanted = ~UINT64_C(0);
      elems_done_ += box.elems();
    }
    // Damage in a segment that was read comes before the failure to read the next: the batch's size must not show.
    QUERN_RETURN_IF_ERROR(give_references({jobs_.data(), read}));
    batch_->report_to(&chunks);
    const Status decoded = batch_->decode({jobs_.data(), read}, report_.holes);
    batch_->report_to(nullptr);
    QUERN_RETURN_IF_ERROR(decoded);
    QUERN_RETURN_IF_ERROR(failed);
    segment += count;
    report_.input_bytes = segments_->bytes_read();
    report_.bytes_read = bytes_fetched();
    if (progress_ && !progress_(elems_done_, shape().elems()))
      return Status(StatusCode::cancelled, "cancelled after {0} elements", number(elems_done_));
  }
  next_band_ = end;
  return {};
}

Status StreamDecoder::fill_window() {
  const SegmentLayout& layout = target_.layout;
  const std::uint64_t band_bytes = layout.band_begin(1) * element_bytes_;
  const std::uint64_t fixed = scratch_bytes() + bytes_per_segment();
  QUERN_RETURN_IF_ERROR(need_memory(fixed + band_bytes));
  // Half of what is left for the window, half for segments in flight.
  const std::uint64_t wanted = (batch_->wanted_segments() + layout.band_segments() - 1) / layout.band_segments();
  const std::uint64_t possible = (memory_limit_ - fixed) / 2 / band_bytes;
  const std::uint64_t bands =
      std::min(layout.bands() - next_band_, std::clamp<std::uint64_t>(wanted, 1, std::max<std::uint64_t>(possible, 1)));
  const std::uint64_t begin = layout.band_begin(next_band_);
  const std::uint64_t end = layout.band_begin(next_band_ + bands);
  QUERN_RETURN_IF_ERROR(window_.resize((end - begin) * element_bytes_));
  window_at_ = 0;
  return decode_bands(next_band_, next_band_ + bands, window_.data());
}

Result<std::size_t> StreamDecoder::pull_bytes(std::span<std::uint8_t> out) {
  if (out.size() % element_bytes_ != 0)
    return Status(StatusCode::invalid_argument, "{0} bytes are not whole elements of {1} bytes", number(out.size()),
                  number(element_bytes_));
  const SegmentLayout& layout = target_.layout;
  const std::uint64_t bands = layout.segments() == 0 ? 0 : layout.bands();
  std::size_t done = 0;
  while (done < out.size()) {
    if (window_at_ < window_.size()) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(window_.size() - window_at_, out.size() - done));
      std::memcpy(out.data() + done, window_.data() + window_at_, n);
      window_at_ += n;
      done += n;
      continue;
    }
    if (next_band_ == bands) break;
    const std::uint64_t begin = layout.band_begin(next_band_);
    std::uint64_t end = next_band_;
    while (end < bands && (layout.band_begin(end + 1) - begin) * element_bytes_ <= out.size() - done) ++end;
    if (end > next_band_) {
      const std::uint64_t bytes = (layout.band_begin(end) - begin) * element_bytes_;
      QUERN_RETURN_IF_ERROR(decode_bands(next_band_, end, out.data() + done));
      done += static_cast<std::size_t>(bytes);
    } else {
      QUERN_RETURN_IF_ERROR(fill_window());
    }
  }
  // The trailer is checked with the last elements, so that nobody has them all without the check.
  if (next_band_ == bands && !finished_) {
    QUERN_RETURN_IF_ERROR(segments_->finish());
    finished_ = true;
    report_.input_bytes = segments_->bytes_read();
    report_.bytes_read = bytes_fetched();
  }
  return done;
}

Result<std::size_t> StreamDecoder::pull(std::span<std::uint8_t> out) {
  if (!failed_.ok()) return failed_;
  try {
    auto pulled = pull_bytes(out);
    if (!pulled.ok()) failed_ = pulled.status();
    return pulled;
  } catch (const std::bad_alloc&) {
    failed_ = out_of_memory();
    return failed_;
  }
}

Result<std::unique_ptr<Decoder>> Decoder::open(ByteSource& source, const Registry& registry, const Execution& execution,
                                               const DecompressOptions& options) {
  try {
    auto decoder = std::make_unique<StreamDecoder>(source, execution, options);
    QUERN_RETURN_IF_ERROR(decoder->start(registry));
    return std::unique_ptr<Decoder>(std::move(decoder));
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<DecompressReport> decompress(ByteSource& source, const MutableArrayView& out, const Registry& registry,
                                    const Execution& execution, const DecompressOptions& options) {
  QUERN_ASSIGN_OR_RETURN(const auto decoder, Decoder::open(source, registry, execution, options));
  if (decoder->info().dtype != out.dtype)
    return Status(StatusCode::invalid_argument, "the array has another element type than the stream");
  if (!(decoder->shape() == out.shape))
    return Status(StatusCode::invalid_shape, options.level == 0 ? "the array has another shape than the stream"
                                                                : "the array has another shape than the level");
  if (out.data == nullptr && out.elems() != 0) return Status(StatusCode::invalid_argument, "the array has no memory");
  QUERN_ASSIGN_OR_RETURN(const std::size_t bytes,
                         decoder->pull({static_cast<std::uint8_t*>(out.data), static_cast<std::size_t>(out.bytes())}));
  static_cast<void>(bytes);
  return decoder->report();
}

Result<StreamInfo> inspect(ByteSource& source, const Registry& registry) {
  try {
    QUERN_ASSIGN_OR_RETURN(const ReadHeader read, read_header(source));
    const Header& header = read.header;
    StreamInfo info = describe(header, read.bytes, SegmentLayout(header.grid, header.dtype), registry);
    const auto decoder = open_codec(header, registry);
    // A header can be told of without a codec that opens it.
    if (decoder.status().code() == StatusCode::out_of_memory) return decoder.status();
    if (decoder.ok()) describe_levels(decoder->get(), info);
    return info;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<Vector<StreamSpan>> list_streams(ByteSource& source) {
  if (!source.can_seek())
    return Status(StatusCode::unsupported, "streams can be listed only in a source that can seek; this one cannot");
  try {
    Vector<StreamSpan> streams;
    std::uint64_t end = source.size();
    while (end > 0) {
      QUERN_ASSIGN_OR_RETURN(const Footer footer, read_footer(source, end));
      end -= footer.stream_bytes;
      QUERN_RETURN_IF_ERROR(source.seek(end));
      QUERN_ASSIGN_OR_RETURN(const std::uint64_t header, check_header(source));
      if (header + kFooterBytes > footer.stream_bytes)
        return Status(StatusCode::corrupt, "the trailer claims a stream of {0} bytes, fewer than its header",
                      number(footer.stream_bytes));
      streams.push_back({end, footer.stream_bytes});
    }
    std::reverse(streams.begin(), streams.end());
    return streams;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace quern

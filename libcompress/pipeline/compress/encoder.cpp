// The push encoder: keeps the prefix that the plan is made from, then just the bands that make a batch.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <quern/compress.h>

#include "libcompress/core/buffer.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/encode/bound_resolution.h"
#include "libcompress/pipeline/encode/prequantize.h"
#include "libcompress/pipeline/encode/stream_encoder.h"
#include "libcompress/pipeline/search/choose_codec.h"
#include "libcompress/pipeline/search/sample_array.h"

namespace quern {
namespace {

/// What codecs are compared on when the array is longer than what a plan looks at.
constexpr std::uint64_t kChoiceBytes = UINT64_C(16) << 20;

class PushEncoder final : public Encoder {
 public:
  PushEncoder(DType dtype, const Shape& shape, const CompressOptions& options, const Registry& registry,
              const Execution& execution, ByteSink& sink)
      : dtype_(dtype),
        shape_(shape),
        options_(options),
        registry_(registry),
        progress_(execution.progress),
        memory_limit_(execution.memory_limit),
        device_(execution.device),
        runner_(execution),
        sink_(sink),
        element_bytes_(dtype_bytes(dtype)),
        total_bytes_(shape.elems() * element_bytes_) {}

  Status start() {
    prefix_bytes_ = sample_elems(dtype_, shape_) * element_bytes_;
    QUERN_RETURN_IF_ERROR(check_memory(prefix_bytes_));
    QUERN_RETURN_IF_ERROR(buffer_.resize(prefix_bytes_));
    capacity_ = prefix_bytes_;
    if (total_bytes_ == 0) return plan();
    return {};
  }

  Status push(std::span<const std::uint8_t> bytes) override {
    if (!failed_.ok()) return failed_;
    try {
      failed_ = push_bytes(bytes);
    } catch (const std::bad_alloc&) {
      failed_ = Status(StatusCode::out_of_memory, "out of memory");
    }
    return failed_;
  }

  Result<CompressReport> finish() override {
    if (!failed_.ok()) return failed_;
    if (received_ != total_bytes_)
      return Status(StatusCode::invalid_argument, "{0} bytes were given; the array has {1}",
                    static_cast<std::int64_t>(received_), static_cast<std::int64_t>(total_bytes_));
    try {
      QUERN_ASSIGN_OR_RETURN(CompressReport report, stream_->finish());
      report.reason = choice_.reason;
      report.tried = std::move(choice_.tried);
      return report;
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "out of memory");
    }
  }

 private:
  Status check_memory(std::uint64_t bytes) const {
    if (bytes <= memory_limit_) return {};
    return Status(StatusCode::memory_limit, "{0} bytes are needed at least; the limit is {1}",
                  static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(memory_limit_));
  }

  Status push_bytes(std::span<const std::uint8_t> bytes) {
    if (bytes.size() % element_bytes_ != 0)
      return Status(StatusCode::invalid_argument, "{0} bytes are not whole elements of {1} bytes",
                    static_cast<std::int64_t>(bytes.size()), static_cast<std::int64_t>(element_bytes_));
    if (bytes.size() > total_bytes_ - received_)
      return Status(StatusCode::invalid_argument, "more bytes were given than the {0} the array has",
                    static_cast<std::int64_t>(total_bytes_));
    while (!bytes.empty()) {
      const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(capacity_ - have_, bytes.size()));
      std::memcpy(buffer_.data() + have_, bytes.data(), n);
      if (options_.idempotent) {
        const EnforcedBound bound = resolve_bound(options_.bound, given_range(options_)).enforced;
        QUERN_RETURN_IF_ERROR(
            prequantize(dtype_, bound, options_.fill_bits, buffer_.data() + have_, n / element_bytes_, runner_.get()));
      }
      have_ += n;
      received_ += n;
      bytes = bytes.subspan(n);
      if (have_ == capacity_ || received_ == total_bytes_) QUERN_RETURN_IF_ERROR(drain());
    }
    return {};
  }

  Status plan() {
    const std::uint64_t elems = prefix_bytes_ / element_bytes_;
    QUERN_ASSIGN_OR_RETURN(const Shape sample_shape, Shape::make({&elems, 1}));
    SetupRequest request{dtype_,
                         shape_,
                         &options_,
                         {},
                         resolve_bound(options_.bound, given_range(options_)),
                         ArrayView{buffer_.data(), dtype_, sample_shape},
                         memory_limit_,
                         device_};
    if (options_.range) request.bound.range = options_.range;
    QUERN_RETURN_IF_ERROR(choose(request));
    QUERN_ASSIGN_OR_RETURN(stream_, StreamEncoder::create(request, buffer_.size(), runner_.get(), progress_, sink_));
    return {};
  }

  // Where several codecs come into question, the first values decide: all of them if they are few.
  Status choose(SetupRequest& request) {
    QUERN_ASSIGN_OR_RETURN(const auto candidates,
                           find_candidates(dtype_, request.bound.enforced.kind, options_, registry_));
    request.candidate = candidates[0];
    choice_.reason = lone_reason(candidates[0], request.bound, options_);
    if (candidates.size() == 1 || total_bytes_ == 0) return {};
    ArrayView array{buffer_.data(), dtype_, shape_};
    if (prefix_bytes_ < total_bytes_) {
      QUERN_ASSIGN_OR_RETURN(array, leading_part(array, kChoiceBytes / element_bytes_));
    }
    Execution execution;
    execution.memory_limit = memory_limit_ - buffer_.size();
    execution.device = device_;
    if (progress_) execution.progress = [this](std::uint64_t, std::uint64_t) { return progress_(0, shape_.elems()); };
    Trials trials(array, options_, registry_, execution, runner_.get());
    QUERN_ASSIGN_OR_RETURN(choice_, choose_candidate(trials, candidates, request.bound));
    request.candidate = choice_.candidate;
    return {};
  }

  // Encodes every whole band in the buffer and moves the rest to its front.
  Status drain() {
    const bool first = stream_ == nullptr;
    if (first) QUERN_RETURN_IF_ERROR(plan());
    const std::uint64_t end = begin_ + have_ / element_bytes_;
    const std::uint64_t bands = stream_->layout().bands();
    std::uint64_t band = next_band_;
    while (band < bands && stream_->layout().band_begin(band + 1) <= end) ++band;
    if (band > next_band_) {
      const std::uint64_t next_begin = stream_->layout().band_begin(band);
      QUERN_RETURN_IF_ERROR(stream_->encode_until(band * stream_->layout().band_segments(), {buffer_.data(), begin_}));
      if (received_ < total_bytes_) {
        const std::uint64_t used = (next_begin - begin_) * element_bytes_;
        std::memmove(buffer_.data(), buffer_.data() + used, have_ - used);
        have_ -= used;
        begin_ = next_begin;
        next_band_ = band;
      }
    }
    return first && received_ < total_bytes_ ? set_capacity() : Status();
  }

  // From the prefix to a buffer of as many bands as a batch wants and the limit allows.
  Status set_capacity() {
    const SegmentLayout& layout = stream_->layout();
    const std::uint64_t band_bytes = layout.band_begin(1) * element_bytes_;
    const std::uint64_t wanted = (stream_->wanted_segments() + layout.band_segments() - 1) / layout.band_segments();
    // While growing, the old buffer and the new one stand side by side.
    const std::uint64_t moving = have_ != 0 ? prefix_bytes_ : 0;
    const std::uint64_t fixed = stream_->memory_for(1) + moving;
    QUERN_RETURN_IF_ERROR(check_memory(fixed + band_bytes));
    const std::uint64_t possible = (memory_limit_ - fixed) / band_bytes;
    capacity_ = std::clamp<std::uint64_t>(wanted, 1, std::max<std::uint64_t>(possible, 1)) * band_bytes;
    if (capacity_ <= prefix_bytes_) {
      capacity_ = std::max(capacity_, prefix_bytes_ / band_bytes * band_bytes);
      return {};
    }
    AlignedBuffer larger;
    QUERN_RETURN_IF_ERROR(larger.resize(capacity_));
    std::memcpy(larger.data(), buffer_.data(), have_);
    buffer_ = std::move(larger);
    return stream_->set_held_bytes(capacity_);
  }

  DType dtype_;
  Shape shape_;
  CompressOptions options_;
  const Registry& registry_;
  ProgressCallback progress_;
  std::uint64_t memory_limit_;
  Device* device_;
  RunnerHandle runner_;
  ByteSink& sink_;
  std::size_t element_bytes_;
  std::uint64_t total_bytes_;
  std::uint64_t prefix_bytes_ = 0;

  AlignedBuffer buffer_;
  std::uint64_t capacity_ = 0;  // bytes at which the buffer is drained
  std::uint64_t have_ = 0;      // bytes in the buffer
  std::uint64_t begin_ = 0;     // flat index of the buffer's first element
  std::uint64_t next_band_ = 0;
  std::uint64_t received_ = 0;
  std::unique_ptr<StreamEncoder> stream_;
  CodecChoice choice_;
  Status failed_;
};

}  // namespace

Result<std::unique_ptr<Encoder>> Encoder::create(DType dtype, const Shape& shape, const CompressOptions& options,
                                                 const Registry& registry, const Execution& execution, ByteSink& sink) {
  QUERN_RETURN_IF_ERROR(check_options(dtype, options, registry));
  const BoundKind kind = options.bound.kind;
  if (kind == BoundKind::psnr || kind == BoundKind::ratio || (kind == BoundKind::rel && !options.range))
    return Status(StatusCode::invalid_argument,
                  "this bound needs the whole array (rel: or its range) before the first byte is written");
  try {
    auto encoder = std::make_unique<PushEncoder>(dtype, shape, options, registry, execution, sink);
    QUERN_RETURN_IF_ERROR(encoder->start());
    return std::unique_ptr<Encoder>(std::move(encoder));
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern

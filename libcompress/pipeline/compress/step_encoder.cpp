// A session of time steps: the step alone, then predicted from the last one, and the smaller stream.
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include <quern/steps.h>

#include "libcompress/core/buffer.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/pipeline/encode/stream_encoder.h"

namespace quern {
namespace {

using Bytes = Vector<std::uint8_t>;

// A prediction that saves less is not worth what it costs readers.
constexpr std::uint64_t kWorthPart = 64;

/// A stream that is given up where it is no smaller than one that is there.
class LimitedSink final : public ByteSink {
 public:
  LimitedSink(std::uint64_t most, Bytes& bytes) : most_(most), bytes_(bytes) {}
  Status write(std::span<const std::uint8_t> piece) override {
    reached_ = reached_ || piece.size() > most_ - bytes_.size();
    if (reached_) return Status(StatusCode::destination_too_small, "the stream is longer than the step alone");
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    return {};
  }
  bool reached() const { return reached_; }

 private:
  std::uint64_t most_;
  Bytes& bytes_;
  bool reached_ = false;
};

/// What the next step may be predicted from.
struct LastStep {
  Header header;
  std::uint8_t depth = 0;         ///< of references down to the key step
  std::optional<ReferenceId> of;  ///< what it was predicted from itself
};

class Session final : public StepEncoder {
 public:
  Session(const Registry& registry, unsigned key_every) : registry_(&registry), key_every_(key_every) {}

  void use(const Registry& registry) override { registry_ = &registry; }

  Status resume(std::span<const std::uint8_t> stream, const ArrayView& values) override {
    try {
      last_.reset();
      QUERN_ASSIGN_OR_RETURN(LastStep last, describe_step(stream));
      if (values.dtype != last.header.dtype || !(values.shape == last.header.shape))
        return Status(StatusCode::invalid_argument, "the values are not of the stream's type and shape");
      QUERN_RETURN_IF_ERROR(values_.resize(values.bytes()));
      if (values.bytes() != 0) std::memcpy(values_.data(), values.data, static_cast<std::size_t>(values.bytes()));
      pending_.clear();
      last_ = std::move(last);
      return {};
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "out of memory");
    }
  }

  void restart() override {
    last_.reset();
    Bytes().swap(pending_);
    values_ = AlignedBuffer();
  }

  ArrayView before() const override { return last_ && last_->of && !pending_.empty() ? values() : ArrayView{}; }

  Result<StepReport> encode(const ArrayView& step, const CompressOptions& options, const Execution& execution,
                            ByteSink& sink) override {
    try {
      auto report = encode_step(step, options, execution, sink);
      if (!report.ok()) restart();
      return report;
    } catch (const std::bad_alloc&) {
      restart();
      return Status(StatusCode::out_of_memory, "out of memory");
    }
  }

 private:
  Result<LastStep> describe_step(std::span<const std::uint8_t> stream) const {
    MemorySource source(stream);
    LastStep step;
    QUERN_ASSIGN_OR_RETURN(step.of, inspect_reference(source, *registry_));
    QUERN_RETURN_IF_ERROR(source.seek(0));
    QUERN_ASSIGN_OR_RETURN(ReadHeader read, read_header(source));
    step.header = std::move(read.header);
    step.depth = step.of ? step.of->depth : 0;
    return step;
  }

  ArrayView values() const { return {values_.data(), last_->header.dtype, last_->header.shape}; }

  /// Decodes the last step, if that has not been done: nobody may have asked for another one.
  Status decode_last(const Execution& execution) {
    if (pending_.empty()) return {};
    AlignedBuffer decoded;
    const Header& header = last_->header;
    QUERN_RETURN_IF_ERROR(decoded.resize(header.shape.elems() * dtype_bytes(header.dtype)));
    MemorySource source(pending_);
    Execution inner = execution;
    inner.progress = {};
    QUERN_ASSIGN_OR_RETURN(const auto decoder, open_step_beside(source, values(), *registry_, inner));
    QUERN_ASSIGN_OR_RETURN(const std::size_t bytes, decoder->pull(decoded.span()));
    if (bytes != decoded.size()) return Status(StatusCode::internal, "the last step does not decode to its shape");
    values_ = std::move(decoded);
    Bytes().swap(pending_);
    return {};
  }

  /// Whether a step may be predicted from the last one, whose codec it is to have.
  const ArrayCodec* codec_for(const ArrayView& step, const CompressOptions& options,
                              const CompressReport& alone) const {
    const BoundKind asked = options.bound.kind;
    if (!last_ || step.elems() == 0 || options.idempotent || alone.enforced.kind != BoundKind::abs) return nullptr;
    if (asked != BoundKind::abs && asked != BoundKind::rel) return nullptr;
    if (last_->depth + 1u >= key_every_) return nullptr;
    if (step.dtype != last_->header.dtype || !(step.shape == last_->header.shape)) return nullptr;
    const ArrayCodec* const codec = registry_->by_id(last_->header.codec_id);
    if (codec == nullptr || dynamic_cast<const ReferenceCodec*>(codec) == nullptr) return nullptr;
    if (options.codec != "auto" && options.codec != codec->info().name) return nullptr;
    return codec->supports(step.dtype, alone.enforced.kind) ? codec : nullptr;
  }

  /// The stream of a step that is predicted; empty where it is longer than `most`.
  Result<std::optional<CompressReport>> encode_predicted(const ArrayView& step, const CompressOptions& options,
                                                         const Execution& execution, const ArrayCodec& codec,
                                                         const CompressReport& alone, const ReferenceId& id,
                                                         std::uint64_t most, Bytes& out) const {
    const StepReference reference{values(), id, last_->header.params};
    CompressOptions own = options;
    own.codec = codec.info().name;
    const std::uint64_t elems = sample_elems(step.dtype, step.shape);
    QUERN_ASSIGN_OR_RETURN(const Shape sample_shape, Shape::make({&elems, 1}));
    SetupRequest request{
        step.dtype, step.shape, &own, {}, {}, ArrayView{step.data, step.dtype, sample_shape}, execution.memory_limit,
        nullptr,    &reference};
    request.candidate = {&codec, options.codec != "auto", {}};
    request.bound = {alone.enforced, alone.range, false};
    RunnerHandle runner(execution);
    LimitedSink sink(most, out);
    const auto write = [&]() -> Result<CompressReport> {
      QUERN_ASSIGN_OR_RETURN(auto stream, StreamEncoder::create(request, 0, runner.get(), execution.progress, sink));
      if (stream->setup().beside == nullptr)
        return Status(StatusCode::unsupported, "the step does not compress under that plan");
      QUERN_RETURN_IF_ERROR(
          stream->encode_until(stream->layout().segments(), {static_cast<const std::uint8_t*>(step.data), 0}));
      if (stream->setup().beside == nullptr)
        return Status(StatusCode::unsupported, "the step does not compress under that plan");
      return stream->finish();
    };
    auto report = write();
    if (report.ok()) return std::optional<CompressReport>(std::move(report).value());
    out.clear();
    if (sink.reached() || report.status().code() == StatusCode::unsupported) return std::optional<CompressReport>();
    return report.status();
  }

  Result<StepReport> encode_step(const ArrayView& step, const CompressOptions& options, const Execution& execution,
                                 ByteSink& sink) {
    StepReport made;
    Bytes stream;
    {
      VectorSink<Bytes> held(stream);
      QUERN_ASSIGN_OR_RETURN(made.compressed, compress(step, options, *registry_, execution, held));
    }
    made.alone_bytes = stream.size();
    if (const ArrayCodec* const codec = codec_for(step, options, made.compressed)) {
      QUERN_RETURN_IF_ERROR(decode_last(execution));
      const ReferenceId id{hash_values(values()), static_cast<std::uint8_t>(last_->depth + 1)};
      Bytes predicted;
      QUERN_ASSIGN_OR_RETURN(auto report, encode_predicted(step, options, execution, *codec, made.compressed, id,
                                                           stream.size() - stream.size() / kWorthPart - 1, predicted));
      if (report) {
        report->reason = made.compressed.reason;
        report->encodings = made.compressed.encodings + 1;
        report->sample_encodings = made.compressed.sample_encodings;
        report->tried = std::move(made.compressed.tried);
        made.compressed = std::move(*report);
        made.reference = id;
        stream = std::move(predicted);
      }
    }
    QUERN_RETURN_IF_ERROR(sink.write(stream));
    QUERN_ASSIGN_OR_RETURN(LastStep last, describe_step(stream));
    if (!made.reference) values_ = AlignedBuffer();
    last_ = std::move(last);
    pending_ = std::move(stream);
    return made;
  }

  const Registry* registry_;
  unsigned key_every_;
  std::optional<LastStep> last_;
  AlignedBuffer values_;  ///< what the last step decodes to or, while its stream is pending, was predicted from
  Bytes pending_;         ///< the last step's stream, until it is decoded
};

}  // namespace

Result<std::unique_ptr<StepEncoder>> StepEncoder::create(const Registry& registry, unsigned key_every) {
  if (key_every < 1 || key_every > kMostKeyEvery)
    return Status(StatusCode::invalid_argument, "key steps can be every 1 to {0} steps, not every {1}", kMostKeyEvery,
                  static_cast<std::int64_t>(key_every));
  try {
    return std::unique_ptr<StepEncoder>(std::make_unique<Session>(registry, key_every));
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern

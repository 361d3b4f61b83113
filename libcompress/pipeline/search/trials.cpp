// Whole streams to memory, counted or kept, and what they decode to.
#include "libcompress/pipeline/search/trials.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libcompress/pipeline/encode/stream_encoder.h"
#include "libcompress/pipeline/range.h"

namespace quern {
namespace {

class TrialSink final : public ByteSink {
 public:
  TrialSink(const Trials::Limits& limits, Vector<std::uint8_t>& bytes) : limits_(limits), bytes_(bytes) {}

  Status write(std::span<const std::uint8_t> piece) override {
    written_ += piece.size();
    if (written_ > limits_.stop)
      return Status(StatusCode::destination_too_small, "the stream is longer than {0} bytes",
                    static_cast<std::int64_t>(limits_.stop));
    if (written_ <= limits_.keep) {
      bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    } else {
      Vector<std::uint8_t>().swap(bytes_);
    }
    return {};
  }
  std::uint64_t written() const { return written_; }
  bool stopped() const { return written_ > limits_.stop; }
  bool kept() const { return written_ <= limits_.keep; }

 private:
  const Trials::Limits limits_;
  Vector<std::uint8_t>& bytes_;
  std::uint64_t written_ = 0;
};

}  // namespace

Status Trials::report_done() const {
  if (execution_.progress && !execution_.progress(array_.elems(), array_.elems()))
    return Status(StatusCode::cancelled, "cancelled");
  return {};
}

Result<CompressReport> Trials::encode(const Candidate& candidate, const ResolvedBound& bound,
                                      const ProgressCallback& progress, ByteSink& sink) {
  ++encodings_;
  const std::uint64_t elems = sample_elems(array_.dtype, array_.shape);
  QUERN_ASSIGN_OR_RETURN(const Shape sample_shape, Shape::make({&elems, 1}));
  const SetupRequest request{
      array_.dtype, array_.shape,     &options_, candidate, bound, ArrayView{array_.data, array_.dtype, sample_shape},
      memory_left_, execution_.device};
  QUERN_ASSIGN_OR_RETURN(auto stream, StreamEncoder::create(request, 0, runner_, progress, sink));
  QUERN_RETURN_IF_ERROR(
      stream->encode_until(stream->layout().segments(), {static_cast<const std::uint8_t*>(array_.data), 0}));
  return stream->finish();
}

// A lone pass tells of elements; the last of several goes on from what was reported.
Result<CompressReport> Trials::encode(const Candidate& candidate, const ResolvedBound& bound, ByteSink& sink) {
  if (!passes_.begun()) return encode(candidate, bound, execution_.progress, sink);
  passes_.begin_pass(1);
  QUERN_ASSIGN_OR_RETURN(CompressReport report, encode(candidate, bound, passes_.callback(), sink));
  QUERN_RETURN_IF_ERROR(report_done());
  return report;
}

Result<Trial> Trials::run(const Candidate& candidate, const ResolvedBound& bound, const Limits& limits) {
  Trial trial;
  trial.candidate = candidate;
  TrialSink sink(limits, trial.bytes);
  auto report = encode(candidate, bound, passes_.callback(), sink);
  trial.stopped = sink.stopped();
  if (!report.ok() && !trial.stopped) return report.status();
  if (report.ok()) trial.report = std::move(report).value();
  trial.report.output_bytes = sink.written();
  trial.kept = !trial.stopped && sink.kept();
  return trial;
}

Status Trials::measure(Trial& trial, double width, AlignedBuffer& decoded) {
  MemorySource source(trial.bytes);
  Execution inner;
  inner.runner = &runner_;
  inner.memory_limit = execution_.memory_limit;
  inner.progress = passes_.callback();
  inner.device = execution_.device;
  QUERN_ASSIGN_OR_RETURN(const DecompressReport decoding,
                         decompress(source, {decoded.data(), array_.dtype, array_.shape}, registry_, inner));
  static_cast<void>(decoding);
  const SquaredError error = squared_error(array_, decoded.data(), options_.fill_bits, runner_);
  trial.mse = error.sum / static_cast<double>(std::max<std::uint64_t>(error.valid, 1));
  trial.psnr_db =
      trial.mse == 0 ? std::numeric_limits<double>::infinity() : 20 * std::log10(width) - 10 * std::log10(trial.mse);
  trial.report.psnr_db = trial.psnr_db;
  return {};
}

}  // namespace quern

// One-shot compression of an array in memory, and the searches behind psnr and ratio.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include <quern/compress.h>

#include "libcompress/core/buffer.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/bound_resolution.h"
#include "libcompress/pipeline/range.h"
#include "libcompress/pipeline/stream_encoder.h"

namespace quern {
namespace {

/// For trials whose size alone matters; the report has it.
class DiscardingSink final : public ByteSink {
 public:
  Status write(std::span<const std::uint8_t>) override { return {}; }
};

// Keeps 12 bits after the leading one: results of pow, log2 and exp2 differ in their last bits between machines, the
// bounds tried must not.
double coarse(double value) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & ~((UINT64_C(1) << 40) - 1));
}

/// One call of compress().
class Job {
 public:
  Job(const ArrayView& array, const CompressOptions& options, const Registry& registry, const Execution& execution)
      : array_(array),
        options_(options),
        registry_(registry),
        execution_(execution),
        runner_(execution),
        memory_left_(execution.memory_limit) {}

  Result<CompressReport> run(ByteSink& sink) {
    if (options_.bound.kind == BoundKind::psnr) return run_psnr(sink);
    if (options_.bound.kind == BoundKind::ratio) return run_ratio(sink);
    std::optional<ExactRange> range = given_range(options_);
    if (options_.bound.kind == BoundKind::rel && !range) range = measured_range();
    ResolvedBound bound = resolve_bound(options_.bound, range);
    if (options_.range) bound.range = options_.range;
    return encode(bound, execution_.progress, sink);
  }

 private:
  std::optional<ExactRange> measured_range() { return exact_range(array_, options_.fill_bits, runner_.get()); }

  Result<CompressReport> encode(const ResolvedBound& bound, const ProgressCallback& progress, ByteSink& sink) {
    const std::uint64_t elems = sample_elems(array_.dtype, array_.shape);
    QUERN_ASSIGN_OR_RETURN(const Shape sample_shape, Shape::make({&elems, 1}));
    const SetupRequest request{array_.dtype, array_.shape,
                               &options_,    &registry_,
                               bound,        ArrayView{array_.data, array_.dtype, sample_shape},
                               memory_left_, execution_.device};
    QUERN_ASSIGN_OR_RETURN(auto stream, StreamEncoder::create(request, 0, runner_.get(), progress, sink));
    QUERN_RETURN_IF_ERROR(
        stream->encode_until(stream->layout().segments(), {static_cast<const std::uint8_t*>(array_.data), 0}));
    return stream->finish();
  }

  // Searches report no elements; they only ask whether to go on.
  ProgressCallback silent() const {
    if (!execution_.progress) return {};
    return [this](std::uint64_t, std::uint64_t total) { return execution_.progress(0, total); };
  }

  struct Trial {
    CompressReport report;
    Vector<std::uint8_t> bytes;
    double psnr_db = 0;
  };

  Result<Trial> try_psnr(const EnforcedBound& enforced, const ExactRange& range, AlignedBuffer& decoded) {
    Trial trial;
    VectorSink sink(trial.bytes);
    QUERN_ASSIGN_OR_RETURN(trial.report, encode({enforced, range.range}, silent(), sink));
    MemorySource source(trial.bytes);
    Execution inner;
    inner.runner = &runner_.get();
    inner.memory_limit = execution_.memory_limit;
    inner.progress = silent();
    inner.device = execution_.device;
    QUERN_ASSIGN_OR_RETURN(const DecompressReport decoding,
                           decompress(source, {decoded.data(), array_.dtype, array_.shape}, registry_, inner));
    static_cast<void>(decoding);
    const SquaredError error = squared_error(array_, decoded.data(), options_.fill_bits, runner_.get());
    const double mse = error.sum / static_cast<double>(std::max<std::uint64_t>(error.valid, 1));
    trial.psnr_db =
        mse == 0 ? std::numeric_limits<double>::infinity() : 20 * std::log10(range.width_down) - 10 * std::log10(mse);
    trial.report.psnr_db = trial.psnr_db;
    return trial;
  }

  Result<CompressReport> run_psnr(ByteSink& sink) {
    std::optional<ExactRange> range = given_range(options_);
    if (!range) range = measured_range();
    const ResolvedBound exact{{}, range ? std::optional(range->range) : std::nullopt};
    std::optional<Trial> best;
    if (range && range->width_down > 0) {
      // The decoded array and two streams, neither larger than the array and a little.
      const std::uint64_t held = 3 * array_.bytes() + array_.bytes() / 100 + 4096 + 2 * options_.metadata.size();
      if (held > memory_left_)
        return Status(StatusCode::memory_limit, "a bound of kind psnr needs {0} bytes at least; the limit is {1}",
                      static_cast<std::int64_t>(held), static_cast<std::int64_t>(memory_left_));
      memory_left_ -= held;
      QUERN_ASSIGN_OR_RETURN(best, search_psnr(*range));
    }
    if (best) {
      QUERN_RETURN_IF_ERROR(sink.write(best->bytes));
      if (execution_.progress && !execution_.progress(array_.elems(), array_.elems()))
        return Status(StatusCode::cancelled, "cancelled");
      return best->report;
    }
    QUERN_ASSIGN_OR_RETURN(CompressReport report, encode(exact, execution_.progress, sink));
    report.psnr_db = std::numeric_limits<double>::infinity();
    return report;
  }

  // The largest bound that meets the target, to about 2 %; nothing when none was found in a fixed number of steps.
  Result<std::optional<Trial>> search_psnr(const ExactRange& range) {
    AlignedBuffer decoded;
    QUERN_RETURN_IF_ERROR(decoded.resize(array_.bytes()));
    const double target = options_.bound.value;
    // Errors spread evenly over [-E, E] have a mean square of E^2 / 3.
    double e = std::min(range.width_down * std::pow(10.0, -target / 20) * std::sqrt(3.0), range.width_down);
    double low = 0;   // meets the target
    double high = 0;  // misses it; 0 while unknown
    std::optional<Trial> best;
    for (int step = 0; step < kPsnrSteps && std::isfinite(e) && e > 0; ++step) {
      if (e < range.width_down) e = coarse(e);
      QUERN_ASSIGN_OR_RETURN(Trial trial, try_psnr({BoundKind::abs, e}, range, decoded));
      if (trial.psnr_db >= target) {
        low = e;
        best = std::move(trial);
        if (e >= range.width_down) break;
        e = high > 0 ? std::sqrt(low * high) : std::min(e * 1.5, range.width_down);
      } else {
        high = e;
        e = low > 0 ? std::sqrt(low * high) : e / 2;
      }
      if (low > 0 && high > 0 && high / low < 1.02) break;
    }
    return best;
  }

  Result<std::uint64_t> stream_bytes(const ResolvedBound& bound) {
    DiscardingSink sink;
    QUERN_ASSIGN_OR_RETURN(const CompressReport report, encode(bound, silent(), sink));
    return report.output_bytes;
  }

  Result<CompressReport> run_ratio(ByteSink& sink) {
    std::optional<ExactRange> range = given_range(options_);
    if (!range) range = measured_range();
    const double raw = static_cast<double>(array_.bytes());
    const double target = options_.bound.value;
    double best_ratio = 0;
    const auto reaches = [&](const EnforcedBound& enforced) -> Result<bool> {
      const ResolvedBound bound{enforced, range ? std::optional(range->range) : std::nullopt};
      QUERN_ASSIGN_OR_RETURN(const std::uint64_t bytes, stream_bytes(bound));
      best_ratio = std::max(best_ratio, raw / static_cast<double>(bytes));
      return raw >= target * static_cast<double>(bytes);
    };
    ResolvedBound bound{{}, range ? std::optional(range->range) : std::nullopt};
    QUERN_ASSIGN_OR_RETURN(bool met, reaches(bound.enforced));
    if (!met && range && range->width_down > 0) {
      bound.enforced = absolute_bound(range->width_down);
      QUERN_ASSIGN_OR_RETURN(met, reaches(bound.enforced));
      if (met) QUERN_RETURN_IF_ERROR(smallest_that(reaches, bound.enforced));
    }
    if (!met)
      return Status(StatusCode::bound_not_met,
                    "the ratio cannot be reached; the best is {0}/1000, asked for were {1}/1000",
                    thousandths(best_ratio), thousandths(target));
    return encode(bound, execution_.progress, sink);
  }

  // Bisects the binary logarithm; `bound` reaches the target on entry and on return.
  template <class Reaches>
  static Status smallest_that(const Reaches& reaches, EnforcedBound& bound) {
    double high = std::log2(bound.value);
    double low = high - 52;
    for (int step = 0; step < kRatioSteps; ++step) {
      const double middle = (low + high) / 2;
      const EnforcedBound candidate = absolute_bound(coarse(std::exp2(middle)));
      bool met = false;
      if (candidate.kind == BoundKind::abs) {
        QUERN_ASSIGN_OR_RETURN(met, reaches(candidate));
      }
      if (met) {
        high = middle;
        bound = candidate;
      } else {
        low = middle;
      }
    }
    return {};
  }

  static std::int64_t thousandths(double ratio) {
    return static_cast<std::int64_t>(std::min(std::floor(ratio * 1000), 9e18));
  }

  static constexpr int kPsnrSteps = 14;
  static constexpr int kRatioSteps = 12;

  const ArrayView& array_;
  const CompressOptions& options_;
  const Registry& registry_;
  const Execution& execution_;
  RunnerHandle runner_;
  std::uint64_t memory_left_;
};

}  // namespace

Result<CompressReport> compress(const ArrayView& array, const CompressOptions& options, const Registry& registry,
                                const Execution& execution, ByteSink& sink) {
  QUERN_RETURN_IF_ERROR(check_options(array.dtype, options, registry));
  if (array.data == nullptr && array.elems() != 0)
    return Status(StatusCode::invalid_argument, "the array has no memory");
  try {
    Job job(array, options, registry, execution);
    return job.run(sink);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern

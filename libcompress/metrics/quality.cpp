// measure_quality: which passes run, and the formulas on what they collect.
#include <cmath>
#include <new>

#include <quern/metrics.h>

#include "kernels/metrics/error_measures.h"
#include "kernels/metrics/similarity.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/metrics/arguments.h"
#include "libcompress/metrics/autocorrelation.h"
#include "libcompress/metrics/error_pass.h"
#include "libcompress/metrics/ssim.h"

namespace quern {
namespace {

using metrics::ErrorStats;

/// `exponent` says how the sums in `stats` were scaled: errors times 2^-exponent.
void set_statistics(const ErrorStats& stats, int exponent, Quality& quality) {
  quality.valid = stats.valid;
  quality.specials_lost = stats.specials_lost;
  if (stats.valid == 0) return;
  quality.min = stats.min;
  quality.max = stats.max;
  quality.max_error = stats.max_error;
  quality.max_error_index = stats.max_error_index;
  quality.max_pointwise_rel = stats.max_pointwise_rel;
  quality.max_ulp = stats.max_ulp;
  const verifier::ErrorMeasures measures = verifier::error_measures(stats, stats.squared_error.value(), exponent);
  quality.mse = measures.mse;
  if (measures.has_psnr) quality.psnr_db = measures.psnr_db;
  if (measures.has_nrmse) quality.nrmse = measures.nrmse;
}

class Measurement {
 public:
  Measurement(const ArrayView& original, const ArrayView& reconstructed, const QualityOptions& options,
              const Execution& execution)
      : original_(original),
        reconstructed_(reconstructed),
        options_(options),
        memory_limit_(execution.memory_limit),
        runner_(execution),
        progress_(execution.progress, original.elems() * (1 + wants_autocorrelation() + wants_ssim())) {}

  Result<Quality> run() {
    Quality quality;
    quality.elems = original_.elems();
    int exponent = 0;
    QUERN_ASSIGN_OR_RETURN(ErrorStats stats, pass(1.0));
    if (verifier::needs_scaling(stats.max_error)) {
      exponent = verifier::scale_exponent(stats.max_error);
      QUERN_ASSIGN_OR_RETURN(stats, pass(std::ldexp(1.0, -exponent)));
    }
    set_statistics(stats, exponent, quality);
    if (!std::isfinite(stats.max_error)) return quality;
    if (wants_autocorrelation()) QUERN_RETURN_IF_ERROR(add_autocorrelation(stats, exponent, quality));
    if (wants_ssim()) QUERN_RETURN_IF_ERROR(add_ssim(stats, quality));
    return quality;
  }

 private:
  bool wants_autocorrelation() const { return options_.autocorrelation_lags != 0; }
  bool wants_ssim() const { return options_.with_ssim && metrics::has_ssim(original_.shape); }

  Result<ErrorStats> pass(double scale) {
    return metrics::error_stats(original_, reconstructed_, options_.validity.fill_bits, scale, runner_.get(),
                                progress_);
  }

  Status add_autocorrelation(const ErrorStats& stats, int exponent, Quality& quality) {
    if (stats.valid == 0 || stats.max_error == 0) {
      quality.error_autocorrelation.assign(options_.autocorrelation_lags, 0.0);
      return {};
    }
    const int wanted = verifier::scale_exponent(stats.max_error);
    metrics::ErrorScale scale;
    scale.factor = std::ldexp(1.0, -wanted);
    scale.mean = std::ldexp(stats.error.value() / static_cast<double>(stats.valid), exponent - wanted);
    scale.all_valid = stats.valid == quality.elems;
    QUERN_ASSIGN_OR_RETURN(
        quality.error_autocorrelation,
        metrics::error_autocorrelation(original_, reconstructed_, options_.validity.fill_bits,
                                       options_.autocorrelation_lags, scale, runner_.get(), progress_));
    return {};
  }

  Status add_ssim(const ErrorStats& stats, Quality& quality) {
    if (!verifier::has_similarity(stats)) return {};
    const metrics::SsimRange range{stats.min, stats.max, stats.valid == quality.elems};
    QUERN_ASSIGN_OR_RETURN(quality.ssim, metrics::mean_ssim(original_, reconstructed_, options_.validity.fill_bits,
                                                            range, memory_limit_, runner_.get(), progress_));
    return {};
  }

  const ArrayView& original_;
  const ArrayView& reconstructed_;
  const QualityOptions& options_;
  std::uint64_t memory_limit_;
  RunnerHandle runner_;
  metrics::Progress progress_;
};

}  // namespace

Result<Quality> measure_quality(const ArrayView& original, const ArrayView& reconstructed,
                                const QualityOptions& options, const Execution& execution) try {
  QUERN_RETURN_IF_ERROR(metrics::check_comparable(original, reconstructed));
  if (options.autocorrelation_lags > metrics::kMaxLags)
    return Status(StatusCode::invalid_argument, "at most {0} lags of autocorrelation are possible", metrics::kMaxLags);
  return Measurement(original, reconstructed, options, execution).run();
} catch (const std::bad_alloc&) {
  return Status(StatusCode::out_of_memory, "out of memory while measuring quality");
}

}  // namespace quern

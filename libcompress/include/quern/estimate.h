// What codecs would make of an array under some bounds, without compressing it. Numbers are predictions; each has the
// interval that holds the true one in about 80 % of cases.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <quern/array.h>
#include <quern/bound.h>
#include <quern/compress.h>
#include <quern/execution.h>
#include <quern/status.h>

namespace quern {

/// A prediction with its 10 % and 90 % quantiles; low <= value <= high.
struct Interval {
  double low = 0;
  double value = 0;
  double high = 0;
};

struct Estimate {
  std::string codec;
  ErrorBound bound;                 ///< as asked: rel, abs or lossless
  double absolute = 0;              ///< the bound in the array's units; 0: every bit is kept
  Interval ratio;                   ///< raw bytes by stream bytes
  std::optional<Interval> psnr_db;  ///< nothing where every bit comes back
  std::optional<Interval> ssim;     ///< nothing for data without windows (one axis)
  Interval max_error_share;         ///< largest error by the bound
  Interval error_autocorrelation;   ///< of neighbours along the row
  Interval compress_mb_per_s;       ///< 10^6 raw bytes a second on one thread of this machine
  Interval decompress_mb_per_s;
  bool wide = false;  ///< the model knows nothing like it: bounds outside its training, or an array unlike all others
};

/// What networks are given of an array.
enum class EstimateFeatures : std::uint8_t {
  usual,   ///< what the model is meant for
  counts,  ///< counts of residuals alone
  deep,    ///< and what a network makes of patches; fails with unsupported where the model has no networks for it
};

struct EstimateOptions {
  std::vector<ErrorBound> bounds;   ///< of kinds rel and abs
  std::vector<std::string> codecs;  ///< empty: all that the model knows and the codec `auto` takes, and peers
  bool all_codecs = false;          ///< where `codecs` is empty: those that `auto` never takes, too
  EstimateFeatures features = EstimateFeatures::usual;
  Vector<std::uint64_t> fill_bits;      ///< declared fill values, as in CompressOptions
  std::optional<ValueRange> range;      ///< of valid values, when known; else measured: one pass over the array
  std::span<const std::uint8_t> model;  ///< bytes of a model file; empty: the one that ships
  bool speeds = true;                   ///< false: they stay 0, and this machine is not timed
};

struct EstimateReport {
  std::vector<Estimate> estimates;  ///< codec by codec, bounds in the order given; lossless codecs once
  std::vector<std::string> notes;   ///< why intervals are wide, in whole sentences
  double range = 0;
  std::uint64_t sampled = 0;  ///< values of the samples, read besides the pass for the range
};

/// Reads some 2^17 values, all of an array of at most 2^18, and all once for the range. Estimates, but
/// times, do not depend on threads or machine. Fails for unknown codecs, bounds that are not positive, arrays without
/// elements (invalid_shape), and models that are damaged, of another kind or newer than this library; with unsupported for
/// models whose inputs are older than those of this library, or whose codecs are of other versions.
class QualityEstimator {
 public:
  virtual ~QualityEstimator() = default;
  virtual Result<EstimateReport> estimate(const ArrayView& array, const EstimateOptions& options,
                                          const Execution& execution) const = 0;
};

/// The one of this build, filled in where all codecs are named.
const QualityEstimator& builtin_estimator();

}  // namespace quern

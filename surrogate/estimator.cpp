// From features and networks to estimates: on a grid of bounds, made monotone there, read at the bounds asked for.
#include "surrogate/estimator.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "surrogate/calibrate.h"
#include "surrogate/features.h"
#include "surrogate/inputs.h"
#include "surrogate/model.h"

namespace quern::surrogate {
namespace {

constexpr double kRateUnit = 0x1p-40;  // bits a value that are as good as none

/// Four significant digits: what machines may differ in beyond them is not said.
double rounded(double x) {
  if (!(x > 0) && !(x < 0)) return x;
  if (!std::isfinite(x)) return x;
  char text[32];
  std::snprintf(text, sizeof text, "%.3e", x);
  return std::strtod(text, nullptr);
}
Interval rounded(const Interval& i) { return {rounded(i.low), rounded(i.value), rounded(i.high)}; }

Interval ordered(double low, double value, double high) { return {std::min(low, value), value, std::max(high, value)}; }

/// Everything that is predicted of a codec at one point of the grid; all that must not fall when the bound grows rises
/// with the numbers here.
struct Point {
  Quantiles ratio;       ///< log2
  Quantiles distortion;  ///< minus dB
  Quantiles unlikeness;  ///< log2(1 - SSIM + floor)
  Prediction raw;
};

Quantiles shifted(const Quantiles& q, double sign, double base) {
  return sign > 0 ? Quantiles{base + q.low, base + q.middle, base + q.high}
                  : Quantiles{-base - q.high, -base - q.middle, -base - q.low};
}

void widen(Quantiles& q, double factor) {
  q.low = q.middle - (q.middle - q.low) * factor;
  q.high = q.middle + (q.high - q.middle) * factor;
}

/// What `lorenzo` makes of a sample is less certain than networks think, which mostly saw it made of the whole array: of
/// later steps of sampled arrays, four in five lie within 0.3 octaves.
void keep_apart(Quantiles& rate) {
  constexpr double kLeast = 0.4;
  rate.low = std::min(rate.low, rate.middle - kLeast);
  rate.high = std::max(rate.high, rate.middle + kLeast);
}

Quantiles mixed(const Quantiles& a, const Quantiles& b, double part) {
  return {a.low + part * (b.low - a.low), a.middle + part * (b.middle - a.middle), a.high + part * (b.high - a.high)};
}

void rise(const Quantiles& before, Quantiles& q) {
  q.low = std::max(q.low, before.low);
  q.middle = std::max(q.middle, before.middle);
  q.high = std::max(q.high, before.high);
}

class Estimation {
 public:
  /// `deep`: deep features of the array; empty where networks take none.
  Estimation(const Features& features, std::vector<double> deep, const Model& model, double calibration)
      : f_(features), deep_(std::move(deep)), model_(model), calibration_(calibration) {
    for (int g = 0; g < kGrid; ++g) inputs_.push_back(inputs_at(f_, g));
  }

  /// Points of the grid, from the largest bound to the smallest.
  std::vector<Point> points(const CodecModel& codec) const {
    std::vector<Point> out;
    for (const Inputs& inputs : inputs_) out.push_back(point(codec, inputs));
    for (std::size_t i = out.size() - 1; i-- > 0;) {
      rise(out[i + 1].ratio, out[i].ratio);
      rise(out[i + 1].distortion, out[i].distortion);
      rise(out[i + 1].unlikeness, out[i].unlikeness);
    }
    return out;
  }
  /// Of a codec that keeps every bit, which has no other bound.
  std::vector<Point> exact_points(const CodecModel& codec) const {
    return std::vector<Point>(kGrid, point(codec, lossless_inputs(f_)));
  }
  /// The largest distance from the training of all that was answered.
  double distance() const { return distance_; }

  static double widening(double distance) { return distance <= 1 ? 1 : std::min(1 + 2 * (distance - 1), 8.0); }

  Estimate at(const CodecModel& codec, const std::vector<Point>& points, const ErrorBound& bound, bool lossless) {
    Estimate out;
    out.bound = bound;
    const double range = f_.range > 0 ? f_.range : 1;
    const double relative = lossless ? 0 : bound.kind == BoundKind::abs ? bound.value / range : bound.value;
    out.absolute = lossless ? 0 : bound.kind == BoundKind::abs ? bound.value : bound.value * f_.range;
    const bool exact = lossless || f_.is_constant() || (!is_float(f_.dtype) && out.absolute < 1);
    if (exact) out.absolute = 0;
    const bool rounds = codec.power_steps && out.absolute > 0 && std::isfinite(out.absolute);
    const double rounded_bound = rounds ? power_of_two_below(out.absolute) : out.absolute;
    const double used = rounds ? rounded_bound / range : relative;
    const double effective = effective_bound(f_, lossless ? kLosslessBound : std::max(used, 1e-300));
    const double place = std::clamp(-2 * log2_of(effective), 0.0, static_cast<double>(kGrid - 1));
    const auto low = static_cast<std::size_t>(std::min(static_cast<int>(place), kGrid - 2));
    const double part = place - static_cast<double>(low);
    const Point& a = points[low];
    const Point& b = points[low + 1];
    distance_ = std::max({distance_, a.raw.distance, b.raw.distance});
    // Beyond the grid each halving of the bound takes a bit more.
    const double beyond = lossless ? 0 : std::max(-0.5 * (kGrid - 1) - log2_of(effective), 0.0);
    out.wide = f_.is_constant() || f_.sampled < 4096 || f_.lorenzo.empty() ||
               (!exact && (relative < model_.least_bound / 2 || relative > model_.largest_bound * 2));
    const double factor = out.wide ? 4 : 1;
    const auto mix = [&](const Quantiles& x, const Quantiles& y) {
      Quantiles q = mixed(x, y, part);
      widen(q, factor);
      return q;
    };
    const auto target = [&](Target t) { return mix(a.raw.targets[t], b.raw.targets[t]); };
    out.ratio = ratio_of(mix(a.ratio, b.ratio), beyond);
    if (!exact) {
      Quantiles d = mix(a.distortion, b.distortion);
      const double more = 6.0205999132796239 * beyond;
      d = {d.low - more, d.middle - more, d.high - more};
      // No error is above the bound.
      const double least = relative > 0 ? -6.0205999132796239 * log2_of(relative) : 0;
      out.psnr_db = rounded(ordered(std::max(-d.high, least), std::max(-d.middle, least), std::max(-d.low, least)));
      if (f_.rank > 1) {
        const Quantiles u = mix(a.unlikeness, b.unlikeness);
        const auto ssim = [](double l) { return std::clamp(1 + kSsimFloor - exp2_of(l), 0.0, 1.0); };
        out.ssim = rounded(ordered(ssim(u.high), ssim(u.middle), ssim(u.low)));
      }
      const Quantiles e = target(kMaxError);
      // Networks say it of the bound that the codec works with.
      const double part_used = rounds ? rounded_bound / out.absolute : 1;
      const auto share = [&](double x) { return std::clamp(x, 0.0, 1.0) * part_used; };
      out.max_error_share = rounded(ordered(share(e.low), share(e.middle), share(e.high)));
      const Quantiles c = target(kAutocorrelation);
      const auto correlation = [](double x) { return std::clamp(x, -1.0, 1.0); };
      out.error_autocorrelation = rounded(ordered(correlation(c.low), correlation(c.middle), correlation(c.high)));
    }
    out.compress_mb_per_s = speed_of(target(kCompressTime));
    out.decompress_mb_per_s = speed_of(target(kDecompressTime));
    return out;
  }

 private:
  Point point(const CodecModel& codec, const Inputs& inputs) const {
    const double bits = 8.0 * static_cast<double>(dtype_bytes(f_.dtype));
    Point p;
    Inputs all = inputs;
    all.insert(all.end(), deep_.begin(), deep_.end());
    p.raw = predict(codec, all);
    for (Quantiles& q : p.raw.targets) widen(q, widening(p.raw.distance));
    if (f_.sampled < f_.shape.elems() && rate_base(codec.codec) == kBaseLorenzo) keep_apart(p.raw.targets[kRate]);
    p.ratio = shifted(p.raw.targets[kRate], -1, base_of(inputs, rate_base(codec.codec)) - log2_of(bits));
    p.distortion = shifted(p.raw.targets[kPsnr], -1, base_of(inputs, kBasePsnr));
    p.unlikeness = shifted(p.raw.targets[kSsim], 1, base_of(inputs, kBaseSsim));
    return p;
  }

  /// Between what every stream keeps to, raw + raw / 1000 + 256 bytes, and a stream of 64 bytes.
  Interval ratio_of(const Quantiles& log, double more_bits) const {
    const double raw = static_cast<double>(f_.shape.elems() * dtype_bytes(f_.dtype));
    const double least = raw / (raw + raw / 1000 + 256);
    const double most = std::max(raw / 64, least);
    const double bits = 8.0 * static_cast<double>(dtype_bytes(f_.dtype));
    const auto ratio = [&](double x) { return std::clamp(bits / (bits / exp2_of(x) + more_bits), least, most); };
    if (f_.is_constant()) return rounded(Interval{least, std::clamp(raw / 160, least, most), most});
    return rounded(ordered(ratio(log.low), ratio(log.middle), ratio(log.high)));
  }
  Interval speed_of(const Quantiles& log) const {
    if (calibration_ <= 0) return {};
    const double megabytes = static_cast<double>(dtype_bytes(f_.dtype));  // of a million values
    const auto speed = [&](double x) { return megabytes / (exp2_of(x) * calibration_); };
    return rounded(ordered(speed(log.high), speed(log.middle), speed(log.low)));
  }

  const Features& f_;
  std::vector<double> deep_;
  const Model& model_;
  double calibration_;
  double distance_ = 0;
  std::vector<Inputs> inputs_;
};

void add_notes(const EstimateReport& report, const Features& f, const Model& model, double distance,
               std::vector<std::string>& notes) {
  if (f.is_constant()) {
    notes.emplace_back("no two valid values differ: the model knows no such arrays, and intervals are wide");
  } else if (f.sampled < 4096) {
    notes.emplace_back("so few values say little: intervals are wide; compress them to know");
  } else if (f.lorenzo.empty()) {
    notes.emplace_back("codec lorenzo could not be run on a sample of the values: intervals are wide");
  }
  if (distance > 1 && !f.is_constant())
    notes.emplace_back("the array is unlike those that the model was trained on: intervals are wider");
  for (const Estimate& e : report.estimates) {
    const double relative = e.bound.kind == BoundKind::abs && f.range > 0 ? e.bound.value / f.range : e.bound.value;
    if (e.absolute <= 0 || (relative >= model.least_bound / 2 && relative <= model.largest_bound * 2)) continue;
    notes.emplace_back("a bound is outside those of the training: its intervals are wide");
    break;
  }
}

Status check_options(const EstimateOptions& options, const Model& model, const Registry& registry) {
  for (const ErrorBound& bound : options.bounds) {
    if (bound.kind != BoundKind::rel && bound.kind != BoundKind::abs)
      return Status(StatusCode::invalid_bound, "estimates are for absolute and relative bounds");
    if (!(bound.value > 0) || !std::isfinite(bound.value))
      return Status(StatusCode::invalid_bound, "a bound must be a positive number");
  }
  for (const std::string& name : options.codecs) {
    if (model.by_name(name) != nullptr) continue;
    const ArrayCodec* const codec = registry.by_name(name);
    if (codec != nullptr && !is_estimated(*codec)) return Status(StatusCode::unsupported, kNotEstimated);
    return Status(StatusCode::unknown_codec, "the model does not know that codec");
  }
  if (options.features == EstimateFeatures::deep && !model.deep)
    return Status(StatusCode::unsupported,
                  "the model has no deep features; train one with quern train quality --features deep --data FILE...");
  return {};
}

Status check_codecs(const std::vector<CodecModel>& codecs, const Registry& registry) {
  for (const CodecModel& codec : codecs) {
    if (codec.foreign) continue;
    const ArrayCodec* here = registry.by_name(codec.codec);
    if (here == nullptr || here->info().version != codec.version)
      return Status(StatusCode::unsupported,
                    "the model is for version {0} of a codec that this quern has not: train one on runs of this quern",
                    codec.version);
  }
  return {};
}

class Estimator final : public QualityEstimator {
 public:
  explicit Estimator(const Registry& registry) : registry_(registry) {}

  Result<EstimateReport> estimate(const ArrayView& array, const EstimateOptions& options,
                                  const Execution& execution) const override {
    try {
      if (options.model.empty()) {
        const Result<Model>& shipped = shipped_model();
        return shipped.ok() ? run_checked(*shipped, array, options, execution) : shipped.status();
      }
      QUERN_ASSIGN_OR_RETURN(const Model model, read_model(options.model));
      return run_checked(model, array, options, execution);
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "out of memory");
    }
  }

 private:
  Result<EstimateReport> run_checked(const Model& model, const ArrayView& array, const EstimateOptions& options,
                                     const Execution& execution) const {
    QUERN_RETURN_IF_ERROR(check_versions(model, registry_));
    QUERN_RETURN_IF_ERROR(check_options(options, model, registry_));
    if (array.elems() == 0)
      return Status(StatusCode::invalid_shape, "the array has no elements: there is nothing to estimate");
    return run(model, array, options, execution);
  }

  Result<EstimateReport> run(const Model& model, const ArrayView& array, const EstimateOptions& options,
                             const Execution& execution) const {
    std::optional<ValueRange> range = options.range;
    if (!range) range = value_range(array, options.fill_bits, execution);
    QUERN_ASSIGN_OR_RETURN(const Features features,
                           extract_features(array, range, options.fill_bits, registry_, execution));
    const bool deep = model.deep && (options.features == EstimateFeatures::deep ||
                                     (options.features == EstimateFeatures::usual && model.deep->usual));
    std::vector<double> of_patches;
    if (deep) of_patches = deep_features(model.deep->patches, take_patches(array, range, options.fill_bits));
    Estimation estimation(features, std::move(of_patches), model, options.speeds ? calibration_seconds() : 0);
    EstimateReport report;
    report.range = features.range;
    report.sampled = features.sampled + lorenzo_sampled(array.shape);
    for (const CodecModel& codec : deep ? model.deep->codecs : model.codecs) {
      if (!is_asked(options, codec) || !takes(codec, array.dtype)) continue;
      const bool lossless = !codec.foreign && registry_.by_name(codec.codec)->info().tier == CodecTier::archive;
      const std::vector<Point> points = lossless ? estimation.exact_points(codec) : estimation.points(codec);
      const std::vector<ErrorBound> exact{{BoundKind::lossless, 0.0}};
      for (const ErrorBound& bound : lossless ? exact : options.bounds) {
        report.estimates.push_back(estimation.at(codec, points, bound, lossless));
        report.estimates.back().codec = codec.codec;
      }
    }
    add_notes(report, features, model, estimation.distance(), report.notes);
    return report;
  }

  bool is_asked(const EstimateOptions& options, const CodecModel& codec) const {
    const auto& asked = options.codecs;
    if (!asked.empty()) return std::find(asked.begin(), asked.end(), codec.codec) != asked.end();
    return options.all_codecs || codec.foreign || registry_.by_name(codec.codec)->info().tier != CodecTier::named;
  }

  /// Of codecs that are not quern's, what their runs were of is all that is known.
  bool takes(const CodecModel& codec, DType dtype) const {
    if (codec.foreign) return (codec.types >> static_cast<unsigned>(dtype) & 1) != 0;
    const ArrayCodec* known = registry_.by_name(codec.codec);
    return known->info().tier == CodecTier::archive || known->supports(dtype, BoundKind::abs);
  }

  const Registry& registry_;
};

}  // namespace

Status check_versions(const Model& model, const Registry& registry) {
  if (model.inputs_version > kInputsVersion)
    return Status(StatusCode::unsupported_version, "the model takes inputs of version {0}; this quern makes {1}",
                  model.inputs_version, kInputsVersion);
  if (model.inputs_version < kInputsVersion || model.inputs != input_count())
    return Status(StatusCode::unsupported,
                  "the model takes inputs of version {0}, and this quern makes {1}: train one on runs of this quern",
                  model.inputs_version, kInputsVersion);
  QUERN_RETURN_IF_ERROR(check_codecs(model.codecs, registry));
  return model.deep ? check_codecs(model.deep->codecs, registry) : Status();
}

bool is_estimated(const ArrayCodec& codec) { return std::string_view(codec.info().name) != "autoencoder"; }

const QualityEstimator& estimator(const Registry& registry) {
  static const Estimator made(registry);
  return made;
}

}  // namespace quern::surrogate

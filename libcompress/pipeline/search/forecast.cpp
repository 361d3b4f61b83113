// One call of the estimator at half octaves of the range; between them lines.
#include "libcompress/pipeline/search/forecast.h"

#include <algorithm>
#include <cmath>

#include <quern/estimate.h>

namespace quern {
namespace {

constexpr int kBounds = 53;  // of the range: 1, 1 / sqrt(2), ... 2^-26
constexpr double kLeastPsnrSlope = 1, kMostPsnrSlope = 12;
constexpr double kLeastRateSlope = 0.03, kMostRateSlope = 3;

/// Multiples of 1/256: log2 differs in its last bits between machines, what steers a search must not.
double coarse(double value) { return std::round(value * 256) / 256; }

}  // namespace

Result<Forecast> Forecast::of(const Trials& trials, const ValueRange& range) {
  Forecast out;
  const QualityEstimator* const estimator = trials.registry().estimator();
  const double width = range.max - range.min;
  if (estimator == nullptr || !(width > 0) || !std::isfinite(width)) return out;
  EstimateOptions options;
  for (int i = 0; i < kBounds; ++i)
    options.bounds.push_back({BoundKind::rel, std::ldexp(i % 2 ? 0x1.6a09e6p-1 : 1, -(i / 2))});
  options.fill_bits = trials.options().fill_bits;
  options.range = range;
  options.speeds = false;
  options.all_codecs = trials.options().codec != "auto" && !trials.options().codec.empty();
  Execution execution;
  execution.runner = &trials.runner();
  auto report = estimator->estimate(trials.array(), options, execution);
  if (report.status().code() == StatusCode::out_of_memory || report.status().code() == StatusCode::cancelled)
    return report.status();
  if (!report.ok()) return out;
  for (const Estimate& e : report->estimates) {
    const bool exact = e.bound.kind == BoundKind::lossless;
    if (out.curves_.empty() || out.curves_.back().codec != e.codec) out.curves_.push_back({e.codec, exact, {}});
    if (!exact && (!e.psnr_db || !(e.absolute > 0))) continue;  // integers whose bits all come back, bounds of no size
    const double place = exact ? 0 : coarse(std::log2(e.absolute));
    out.curves_.back().points.push_back({place, coarse(std::log2(e.ratio.value)), coarse(std::log2(e.ratio.high)),
                                         exact ? 0 : coarse(e.psnr_db->value)});
  }
  return out;
}

const Forecast::Curve* Forecast::find(std::string_view codec, bool exact) const {
  for (const Curve& curve : curves_)
    if (curve.codec == codec && curve.exact == exact && !curve.points.empty()) return &curve;
  return nullptr;
}

/// From the largest bound on, `sign` times `what` rises to `sign` times the target: the first place where it does.
std::optional<Expected> Forecast::crossing(const Curve& curve, double Point::*what, double target, double sign) {
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    const Point& a = curve.points[i - 1];
    const Point& b = curve.points[i];
    if (sign * (a.*what) > sign * target) return std::nullopt;  // met at the largest bound already
    if (sign * (b.*what) < sign * target) continue;
    const double part = b.*what == a.*what ? 1 : (target - a.*what) / (b.*what - a.*what);
    const auto between = [&](double Point::*of) { return a.*of + part * (b.*of - a.*of); };
    // Slopes over four half octaves: single ones are uneven.
    const Point& wide = curve.points[i < 2 ? 0 : i - 2];
    const Point& tight = curve.points[std::min(i + 1, curve.points.size() - 1)];
    const double octaves = wide.place - tight.place;
    Expected out;
    out.place = coarse(between(&Point::place));
    out.psnr_slope = std::clamp((tight.psnr_db - wide.psnr_db) / octaves, kLeastPsnrSlope, kMostPsnrSlope);
    out.rate_slope = std::clamp((wide.ratio - tight.ratio) / octaves, kLeastRateSlope, kMostRateSlope);
    out.ratio = std::exp2(coarse(between(&Point::ratio)));
    out.most_ratio = std::exp2(coarse(between(&Point::most_ratio)));
    return out;
  }
  return std::nullopt;
}

std::optional<Expected> Forecast::at_psnr(std::string_view codec, double psnr_db) const {
  const Curve* const curve = find(codec, false);
  return curve == nullptr ? std::nullopt : crossing(*curve, &Point::psnr_db, psnr_db, 1);
}

std::optional<Expected> Forecast::at_ratio(std::string_view codec, double ratio, bool hopeful) const {
  const Curve* const curve = find(codec, false);
  if (curve == nullptr) return std::nullopt;
  return crossing(*curve, hopeful ? &Point::most_ratio : &Point::ratio, std::log2(ratio), -1);
}

std::optional<double> Forecast::most_exact_ratio(std::string_view codec) const {
  const Curve* const curve = find(codec, true);
  if (curve == nullptr) return std::nullopt;
  return std::exp2(curve->points.front().most_ratio);
}

}  // namespace quern

// Points to pixels.
#include "cli/report/cloud_pictures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace quern::report {
namespace {

constexpr std::uint32_t kSide = 480;
constexpr std::uint32_t kRangeWidth = 900;
constexpr std::uint32_t kRangeHeight = 96;
constexpr double kLowest = -26;  // degrees of elevation
constexpr double kHighest = 16;

double range_of(const CloudPoint& p) { return std::sqrt(p.x * p.x + p.y * p.y + p.z * p.z); }

double value_of(const CloudPoint& p, CloudValue value) {
  switch (value) {
    case CloudValue::height: return p.z;
    case CloudValue::error: return p.error;
    case CloudValue::range: return range_of(p);
  }
  return 0;
}

double quantile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

/// Pixels with the value that wins there; NaN where there is no point.
class Canvas {
 public:
  Canvas(std::uint32_t width, std::uint32_t height)
      : width_(width),
        height_(height),
        values_(pixels(), std::numeric_limits<double>::quiet_NaN()),
        order_(pixels(), -std::numeric_limits<double>::infinity()) {}

  /// The value with the largest `order` is kept.
  void put(double column, double row, double value, double order) {
    if (!(column >= 0) || !(row >= 0) || column >= width_ || row >= height_) return;
    const std::size_t at = static_cast<std::size_t>(row) * width_ + static_cast<std::size_t>(column);
    if (order <= order_[at]) return;
    order_[at] = order;
    values_[at] = value;
  }

  IndexedImage image(Scale scale) const {
    IndexedImage out{width_, height_, {}};
    out.pixels.reserve(values_.size());
    for (const double value : values_) out.pixels.push_back(level_of(value, scale.low, scale.high));
    return out;
  }

 private:
  std::size_t pixels() const { return std::size_t{width_} * height_; }

  std::uint32_t width_, height_;
  std::vector<double> values_, order_;
};

}  // namespace

CloudFrame choose_frame(const std::vector<CloudPoint>& a, const std::vector<CloudPoint>& b) {
  std::vector<double> x, y;
  for (const auto* points : {&a, &b})
    for (const CloudPoint& p : *points) {
      x.push_back(p.x);
      y.push_back(p.y);
    }
  const double left = quantile(x, 0.005), right = quantile(x, 0.995);
  const double low = quantile(y, 0.005), high = quantile(y, 0.995);
  CloudFrame out;
  out.x = (left + right) / 2;
  out.y = (low + high) / 2;
  out.half = std::max({(right - left) / 2, (high - low) / 2, 1e-3}) * 1.05;
  return out;
}

Scale choose_scale(const std::vector<CloudPoint>& a, const std::vector<CloudPoint>& b, CloudValue value) {
  std::vector<double> values;
  for (const auto* points : {&a, &b})
    for (const CloudPoint& p : *points)
      if (std::isfinite(value_of(p, value))) values.push_back(value_of(p, value));
  if (values.empty()) return {};
  Scale out;
  if (value == CloudValue::error) {
    out = {0, *std::max_element(values.begin(), values.end())};
  } else {
    out = {quantile(values, 0.02), quantile(values, 0.98)};
  }
  if (!(out.high > out.low)) out.high = out.low + 1e-6;
  return out;
}

IndexedImage birds_eye(const std::vector<CloudPoint>& points, const CloudFrame& frame, CloudValue value, Scale scale) {
  Canvas canvas(kSide, kSide);
  const double per_metre = kSide / (2 * frame.half);
  for (const CloudPoint& p : points) {
    const double column = (p.x - frame.x + frame.half) * per_metre;
    const double row = (frame.y + frame.half - p.y) * per_metre;
    canvas.put(std::floor(column), std::floor(row), value_of(p, value), value_of(p, value));
  }
  return canvas.image(scale);
}

IndexedImage range_image(const std::vector<CloudPoint>& points, CloudValue value, Scale scale) {
  Canvas canvas(kRangeWidth, kRangeHeight);
  for (const CloudPoint& p : points) {
    const double azimuth = std::atan2(p.y, p.x) / std::numbers::pi;
    const double elevation = std::atan2(p.z, std::sqrt(p.x * p.x + p.y * p.y)) * 180 / std::numbers::pi;
    const double column = std::min((1 - azimuth) / 2 * kRangeWidth, kRangeWidth - 1.0);
    const double row = (kHighest - elevation) / (kHighest - kLowest) * kRangeHeight;
    const double order = value == CloudValue::error ? p.error : -range_of(p);
    canvas.put(std::floor(column), std::floor(row), value_of(p, value), order);
  }
  return canvas.image(scale);
}

}  // namespace quern::report

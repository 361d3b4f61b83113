// Scales, ticks and paths.
#include "cli/report/plot.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "cli/report/html.h"

namespace quern::report {
namespace {

constexpr double kHalfLine = 510;
constexpr double kWholeLine = 1060;
constexpr double kHeight = 300;
constexpr double kLeft = 74;
constexpr double kRightMargin = 22;
constexpr double kTop = 30;
constexpr double kBottom = 46;

/// A coordinate with one decimal.
std::string place(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 1).ptr};
}

/// Values to positions along an axis of the picture.
class Scale {
 public:
  Scale(bool logarithmic, double begin, double end) : logarithmic_(logarithmic), begin_(begin), end_(end) {}

  void include(double value) {
    if (!usable(value)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  bool empty() const { return low_ > high_; }
  bool usable(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }

  /// Room at both ends, so that a single value and extreme values are drawn inside.
  void widen(double share) {
    if (logarithmic_) {
      const double decades = std::log10(high_) - std::log10(low_);
      const double factor = std::pow(10.0, decades == 0 ? 0.5 : decades * share);
      low_ = std::max(low_ / factor, std::numeric_limits<double>::min());
      high_ = std::min(high_ * factor, std::numeric_limits<double>::max());
    } else {
      // Never so narrow that neighbouring ticks would round to one number.
      const double least = std::max({std::fabs(low_), std::fabs(high_), 1e-300}) * 1e-9;
      double room = std::min(high_ / 2 - low_ / 2, std::numeric_limits<double>::max() / 4) * 2 * share;
      if (high_ - low_ < least) room = std::max(std::fabs(high_) * 0.1, 1e-300);
      low_ = std::max(low_ - room, -std::numeric_limits<double>::max() / 2);
      high_ = std::min(high_ + room, std::numeric_limits<double>::max() / 2);
    }
  }

  double at(double value) const {
    const double share = logarithmic_ ? (std::log10(value) - std::log10(low_)) / (std::log10(high_) - std::log10(low_))
                                      : (value - low_) / (high_ - low_);
    return begin_ + std::clamp(share, -0.5, 1.5) * (end_ - begin_);
  }

  std::vector<double> ticks() const { return logarithmic_ ? decade_ticks() : linear_ticks(); }

 private:
  std::vector<double> linear_ticks() const {
    const double rough = (high_ - low_) / 5;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    const double lead = rough / power;
    const double step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
    std::vector<double> out;
    if (!(step > 0) || !std::isfinite(step)) return out;
    const double first = std::ceil(low_ / step);
    for (int i = 0; i < 12 && (first + i) * step <= high_; ++i) out.push_back((first + i) * step);
    return out;
  }

  std::vector<double> decade_ticks() const {
    const auto first = static_cast<int>(std::ceil(std::log10(low_) - 1e-9));
    const auto last = static_cast<int>(std::floor(std::log10(high_) + 1e-9));
    std::vector<double> out;
    const int step = std::max(1, (last - first + 6) / 7);
    for (int i = first; i <= last; i += step) out.push_back(std::pow(10.0, i));
    if (out.size() < 2) return linear_ticks();
    return out;
  }

  bool logarithmic_;
  double begin_;
  double end_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

std::string text(double x, double y, const char* attributes, const std::string& words) {
  return "<text x=\"" + place(x) + "\" y=\"" + place(y) + "\" " + attributes + ">" + escape(words) + "</text>\n";
}

std::string line(const char* style, double x1, double y1, double x2, double y2) {
  return "<line class=\"" + std::string(style) + "\" x1=\"" + place(x1) + "\" y1=\"" + place(y1) + "\" x2=\"" +
         place(x2) + "\" y2=\"" + place(y2) + "\"/>\n";
}

std::string curve_path(const Series& series, const Scale& x, const Scale& y) {
  std::string path;
  bool pen_down = false;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!x.usable(series.x[i]) || !y.usable(series.y[i])) {
      pen_down = false;
      continue;
    }
    path += pen_down ? 'L' : 'M';
    path += place(x.at(series.x[i])) + " " + place(y.at(series.y[i]));
    // A point with gaps on both sides becomes a dot.
    const bool alone = !pen_down && (i + 1 == series.x.size() || !y.usable(series.y[i + 1]));
    if (alone) path += "h0.1";
    pen_down = true;
  }
  return path;
}

std::string bars_path(const Series& series, const Scale& x, const Scale& y) {
  std::string path;
  const std::string floor = place(kHeight - kBottom);
  for (std::size_t i = 0; i + 1 < series.x.size() && i < series.y.size(); ++i) {
    if (!y.usable(series.y[i])) continue;
    path += 'M';
    path += place(x.at(series.x[i])) + " " + floor + "V" + place(y.at(series.y[i])) + "H" +
            place(x.at(series.x[i + 1])) + "V" + floor + "z";
  }
  return path;
}

double right_edge(const Plot& plot) { return (plot.wide ? kWholeLine : kHalfLine) - kRightMargin; }

std::string axes(const Plot& plot, const Scale& x, const Scale& y) {
  std::string out;
  const double bottom = kHeight - kBottom;
  const double right = right_edge(plot);
  for (const double tick : x.ticks()) {
    out += line("grid", x.at(tick), kTop, x.at(tick), bottom);
    out += text(x.at(tick), bottom + 17, "text-anchor=\"middle\"", number(tick, 6));
  }
  for (const double tick : y.ticks()) {
    out += line("grid", kLeft, y.at(tick), right, y.at(tick));
    out += text(kLeft - 8, y.at(tick) + 4, "text-anchor=\"end\"", number(tick, 6));
  }
  out += "<rect class=\"frame\" x=\"" + place(kLeft) + "\" y=\"" + place(kTop) + "\" width=\"" + place(right - kLeft) +
         "\" height=\"" + place(bottom - kTop) + "\"/>\n";
  out += text((kLeft + right) / 2, kHeight - 8, "class=\"name\" text-anchor=\"middle\"", plot.x_label);
  const std::string turned =
      "class=\"name\" text-anchor=\"middle\" transform=\"rotate(-90 14 " + place((kTop + bottom) / 2) + ")\"";
  out += text(14, (kTop + bottom) / 2, turned.c_str(), plot.y_label);
  return out;
}

std::string legend(const Plot& plot) {
  std::string out;
  double at = kLeft;
  for (const Series& series : plot.series) {
    if (series.name.empty()) continue;
    const std::string style = "curve s" + std::to_string(series.color) + (series.dashed ? " dashed" : "");
    out += line(style.c_str(), at, 15, at + 22, 15);
    out += text(at + 28, 19, "class=\"name\"", series.name);
    at += 52 + 6.6 * static_cast<double>(series.name.size());
  }
  return out;
}

}  // namespace

std::string render(const Plot& plot) {
  Scale x(plot.log_x, kLeft, right_edge(plot));
  Scale y(plot.log_y, kHeight - kBottom, kTop);
  for (const Series& series : plot.series) {
    for (const double value : series.x) x.include(value);
    for (const double value : series.y) y.include(value);
  }
  if (x.empty() || y.empty()) return "<p class=\"note\">" + escape(plot.title) + ": there is nothing to draw.</p>\n";
  for (const Mark& mark : plot.marks) x.include(mark.x);
  if (plot.from_zero) y.include(0);
  if (plot.log_y && plot.from_zero) y.include(0.5);
  x.widen(plot.log_x ? 0.01 : 0.015);
  y.widen(0.05);
  std::string out = "<svg viewBox=\"0 0 " + place(right_edge(plot) + kRightMargin) + " " + place(kHeight) +
                    "\" role=\"img\">\n<title>" + escape(plot.title) + "</title>\n";
  out += axes(plot, x, y);
  for (const Series& series : plot.series) {
    const std::string color = std::to_string(series.color);
    out += series.bars ? "<path class=\"area f" + color + "\" d=\"" + bars_path(series, x, y) + "\"/>\n"
                       : "<path class=\"curve s" + color + (series.dashed ? " dashed" : "") +
                             "\" stroke-linecap=\"round\" d=\"" + curve_path(series, x, y) + "\"/>\n";
  }
  for (const Mark& mark : plot.marks) {
    out += line("mark", x.at(mark.x), kTop, x.at(mark.x), kHeight - kBottom);
    out += text(x.at(mark.x), kTop - 6, "class=\"mark-name\" text-anchor=\"middle\"", mark.name);
  }
  return out + legend(plot) + "</svg>\n";
}

}  // namespace quern::report

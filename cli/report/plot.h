// Plots as inline SVG: curves, areas, marks, linear and logarithmic axes.
#pragma once

#include <string>
#include <vector>

namespace quern::report {

/// Points with a coordinate that is not finite, or not positive on a logarithmic axis, interrupt a curve.
struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  int color = 0;  ///< 0, 1 or 2
  bool dashed = false;
  bool bars = false;  ///< filled down to the lower edge, for histograms: y[i] holds from x[i] to x[i + 1]
};

struct Mark {
  double x = 0.0;
  std::string name;
};

struct Plot {
  std::string title;  ///< for readers who cannot see the picture
  std::string x_label;
  std::string y_label;
  bool log_x = false;
  bool log_y = false;
  bool wide = false;       ///< for a whole line of the page instead of half of one
  bool from_zero = false;  ///< the y axis holds 0
  std::vector<Series> series;
  std::vector<Mark> marks;
};

/// An <svg> element. A plot without a drawable point says so in words.
std::string render(const Plot& plot);

}  // namespace quern::report

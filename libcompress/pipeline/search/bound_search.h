// Finds the place where a falling function comes down to a target, with few evaluations: what the searches for PSNR and
// ratio share. Places are octaves of the bound; the function says by how much the target is exceeded.
#pragma once

#include <optional>

namespace quern {

class BoundSearch {
 public:
  struct Request {
    double start = 0;   ///< first place to look at
    double lowest = 0;  ///< places lie in [lowest, highest]
    double highest = 0;
    double slope = 1;      ///< by how much the surplus falls in an octave, as far as is known; above 0
    double tolerance = 0;  ///< a surplus in [0, tolerance] ends the search
    int steps = 0;         ///< evaluations at most
  };

  explicit BoundSearch(const Request& request) : request_(request), slope_(request.slope) {}

  /// Where to look next; nothing when the search is over. Stays within a hundredth of an octave of what is known.
  std::optional<double> next();
  /// What was found at `place`: the target is met when `surplus` is 0 or more; infinity is allowed.
  void add(double place, double surplus);

  /// The surplus is known to fall with another slope.
  void set_slope(double slope) { slope_ = slope; }
  double slope() const { return slope_; }

 private:
  struct Point {
    double place = 0;
    double surplus = 0;
  };

  double between();
  double beyond(const Point& known, double direction) const;

  Request request_;
  double slope_;
  std::optional<Point> met_;     // the highest place that meets the target
  std::optional<Point> missed_;  // the lowest that misses it
  int steps_ = 0;
  int repeats_ = 0;  // evaluations in a row that moved the same end
  bool moved_met_ = false;
};

}  // namespace quern

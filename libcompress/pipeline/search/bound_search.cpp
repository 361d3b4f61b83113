// Steps along the slope until both sides are known, then interpolation, halving when one end stays.
#include "libcompress/pipeline/search/bound_search.h"

#include <algorithm>
#include <cmath>

namespace quern {
namespace {

constexpr double kFinest = 0.01;         // octaves
constexpr double kMostSurplus = 1000.0;  // stands for infinity

}  // namespace

void BoundSearch::add(double place, double surplus) {
  const Point point{place, std::clamp(surplus, -kMostSurplus, kMostSurplus)};
  const bool met = surplus >= 0;
  const std::optional<Point>& end = met ? met_ : missed_;
  repeats_ = steps_ > 0 && met == moved_met_ ? repeats_ + 1 : 0;
  moved_met_ = met;
  ++steps_;
  const std::optional<Point>& other = end ? end : (met ? missed_ : met_);
  if (other && other->place != place) {
    const double slope = (point.surplus - other->surplus) / (other->place - place);
    if (slope > 0) slope_ = std::clamp(slope, slope_ / 16, slope_ * 16);
  }
  // Where the function is not quite falling, the highest place that meets the target counts.
  if (met) {
    if (!met_ || place > met_->place) met_ = point;
    if (missed_ && missed_->place <= met_->place) missed_.reset();
  } else if ((!missed_ || place < missed_->place) && (!met_ || place > met_->place)) {
    missed_ = point;
  }
}

double BoundSearch::between() {
  const double width = missed_->place - met_->place;
  if (repeats_ >= 2) {
    repeats_ = 0;
    return met_->place + width / 2;
  }
  const double share = (met_->surplus - request_.tolerance / 2) / (met_->surplus - missed_->surplus);
  return met_->place + width * std::clamp(share, 0.05, 0.95);
}

double BoundSearch::beyond(const Point& known, double direction) const {
  const double step = std::abs(known.surplus - request_.tolerance / 2) / slope_;
  // A target that goes on being missed, or met, is approached faster and faster.
  const double patience = 1 + 0.25 * repeats_;
  return std::clamp(known.place + direction * std::clamp(step * patience, 2 * kFinest, 8.0), request_.lowest,
                    request_.highest);
}

std::optional<double> BoundSearch::next() {
  if (steps_ >= request_.steps) return std::nullopt;
  if (steps_ == 0) return std::clamp(request_.start, request_.lowest, request_.highest);
  if (met_ && met_->surplus <= request_.tolerance) return std::nullopt;
  if (met_ && missed_) {
    if (missed_->place - met_->place <= kFinest) return std::nullopt;
    return between();
  }
  if (met_) {
    if (met_->place >= request_.highest) return std::nullopt;
    return beyond(*met_, 1);
  }
  if (missed_->place <= request_.lowest) return std::nullopt;
  return beyond(*missed_, -1);
}

}  // namespace quern

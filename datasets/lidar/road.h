// The road: a loop of 2 km, a rectangle with rounded corners, on sloped ground; crowned, with kerbs.
#pragma once

#include <cstdint>

namespace quern::drives {

struct Place {
  double x = 0;
  double y = 0;
};

/// A point of the centre line and the unit vector along it.
struct RoadPoint {
  Place at;
  Place along;
  /// `side` metres to the left.
  Place beside(double side) const { return {at.x - along.y * side, at.y + along.x * side}; }
};

class Road {
 public:
  static constexpr double kHalfWidth = 6.2;  ///< metres from the centre line to the kerb
  static constexpr double kPavement = 9.2;   ///< to the end of the pavement

  /// Another town for each seed.
  explicit Road(std::uint64_t seed);

  double length() const { return length_; }
  /// At `metres` along the centre line, counter-clockwise.
  RoadPoint at(double metres) const;
  /// Distance to the centre line, negative inside the loop.
  double beside(Place place) const;
  /// Height of the ground. Grass and rough earth lie beside the pavement.
  double height(Place place) const;

 private:
  double half_x_;
  double half_y_;
  double length_;
  std::uint64_t seed_;
};

}  // namespace quern::drives

#include "datasets/lidar/road.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "datasets/lidar/numbers.h"

namespace quern::drives {
namespace {

constexpr double kCorner = 40;
constexpr double kKerb = 0.12;
constexpr double kCrown = 0.02;

/// Smooth noise of amplitude 1 over cells of `side` metres: corners have random heights, cubic steps between them.
double smooth_noise(Place place, double side, std::uint64_t seed) {
  const double x = place.x / side;
  const double y = place.y / side;
  const double left = std::floor(x);
  const double low = std::floor(y);
  const auto corner = [&](double i, double j) {
    const auto whole = [](double value) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)); };
    return 2 * fraction(mixed(seed + (whole(left + i) << 32) + whole(low + j))) - 1;
  };
  const auto step = [](double t) { return t * t * (3 - 2 * t); };
  const double across = step(x - left);
  const double up = step(y - low);
  const double below = corner(0, 0) + across * (corner(1, 0) - corner(0, 0));
  const double above = corner(0, 1) + across * (corner(1, 1) - corner(0, 1));
  return below + up * (above - below);
}

}  // namespace

Road::Road(std::uint64_t seed) : half_x_(0), half_y_(0), length_(0), seed_(mixed(seed, 1)) {
  half_x_ = 310 + 30 * (fraction(mixed(seed, 2)) - 0.5);
  half_y_ = 510 - half_x_;
  length_ = 4 * (half_x_ + half_y_ - 2 * kCorner) + 2 * kPi * kCorner;
}

RoadPoint Road::at(double metres) const {
  double left = metres - length_ * std::floor(metres / length_);
  const double arc = kPi / 2 * kCorner;
  const std::array<double, 2> straight = {2 * (half_x_ - kCorner), 2 * (half_y_ - kCorner)};
  // Sides from the lower left, each with the corner behind it.
  static constexpr std::array<Place, 4> kAlong = {Place{1, 0}, Place{0, 1}, Place{-1, 0}, Place{0, -1}};
  const double x = half_x_ - kCorner;
  const double y = half_y_ - kCorner;
  const std::array<Place, 4> begin = {Place{-x, -half_y_}, Place{half_x_, -y}, Place{x, half_y_}, Place{-half_x_, y}};
  for (unsigned side = 0; side < 4; ++side) {
    const Place along = kAlong[side];
    const double run = std::min(left, straight[side % 2]);
    const Place end = {begin[side].x + along.x * run, begin[side].y + along.y * run};
    left -= run;
    if (left <= 0) return {end, along};
    if (left > arc && side < 3) {
      left -= arc;
      continue;
    }
    const auto [sine, cosine] = sine_cosine(std::min(left, arc) / kCorner);
    const Place inwards = {-along.y, along.x};
    return {{end.x + kCorner * (along.x * sine + inwards.x * (1 - cosine)),
             end.y + kCorner * (along.y * sine + inwards.y * (1 - cosine))},
            {along.x * cosine + inwards.x * sine, along.y * cosine + inwards.y * sine}};
  }
  return {begin[0], kAlong[0]};
}

double Road::beside(Place place) const {
  const double x = std::abs(place.x) - (half_x_ - kCorner);
  const double y = std::abs(place.y) - (half_y_ - kCorner);
  const double out_x = std::max(x, 0.0);
  const double out_y = std::max(y, 0.0);
  return std::sqrt(out_x * out_x + out_y * out_y) + std::min(std::max(x, y), 0.0) - kCorner;
}

double Road::height(Place place) const {
  const double hills = 3 * smooth_noise(place, 180, seed_) + 0.25 * smooth_noise(place, 35, seed_ + 1);
  const double side = std::abs(beside(place));
  if (side < kHalfWidth) return hills - kCrown * side + 0.006 * smooth_noise(place, 0.7, seed_ + 2);
  const double pavement = hills - kCrown * kHalfWidth + kKerb;
  if (side < kPavement) return pavement;
  // Gardens and banks rise from the pavement.
  const double bank = std::min((side - kPavement) * 0.15, 1.0);
  return pavement + bank * (0.4 + 0.35 * smooth_noise(place, 9, seed_ + 3)) +
         0.05 * smooth_noise(place, 0.6, seed_ + 4);
}

}  // namespace quern::drives

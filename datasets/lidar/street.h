// A street on one day: houses, trees, fences and poles that stay, leaves of the season, cars that are parked for a day,
// and what moves.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/lidar/road.h"
#include "datasets/lidar/shapes.h"

namespace quern::drives {

/// What a pass is like. Days count from 1.
struct Pass {
  std::uint64_t town = 1;
  unsigned day = 1;
  unsigned number = 0;  ///< of the day
  unsigned days = 60;   ///< of the whole season

  std::uint64_t seed() const { return mixed(town, day, number, 77); }
  double season() const { return static_cast<double>(day) / days; }
  bool is_wet() const { return day % 23 == 11; }
};

class Street {
 public:
  explicit Street(const Pass& pass);

  const Road& road() const { return road_; }
  const Pass& pass() const { return pass_; }

  /// Puts what moves, and leaves in the wind, where they are at a time in seconds.
  void set_time(double seconds);
  /// The nearest meeting of a ray within `most` metres.
  Meeting meet(const Ray& ray, double most, Random& random) const;

 private:
  struct Mover {
    Shape shape;
    double start;  ///< metres along the road
    double side;
    double speed;  ///< metres a second, along the road
  };

  void add(const Shape& shape);
  void add_at(double metres, double side, Shape shape, double above, double turn = 0);
  void add_side(double sign);
  void add_house(double metres, double sign, double width, Random& random);
  void add_garden(double metres, double sign, double width, Random& random);
  void add_trees(double sign);
  Shape leaves(double width, double height, double most, Random& random) const;
  void add_parked(double sign);
  void add_movers();
  static void add_car(double metres, double side, Random& random, const auto& put);
  std::size_t cell_of(double x, double y) const;

  static constexpr double kCell = 4;

  Pass pass_;
  Road road_;
  std::vector<Shape> shapes_;
  std::vector<Vector3> still_;  ///< centres of the shapes without wind
  std::vector<Mover> movers_;
  std::vector<Shape> moving_;
  double low_x_ = 0;
  double low_y_ = 0;
  std::size_t wide_ = 0;
  std::vector<std::vector<std::uint32_t>> cells_;
};

}  // namespace quern::drives

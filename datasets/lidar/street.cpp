#include "datasets/lidar/street.h"

#include <algorithm>
#include <cmath>

namespace quern::drives {
namespace {

constexpr double kMargin = 480;  ///< half a side of the town
constexpr double kParkedSide = 5.1;
constexpr double kWindReach = 0.3;

Shape box(Material material, double length, double width, double height) {
  Shape shape;
  shape.material = material;
  shape.half = {length / 2, width / 2, height / 2};
  return shape;
}

Shape pole(Material material, double radius, double height) {
  Shape shape = box(material, 2 * radius, 2 * radius, height);
  shape.kind = Shape::Kind::cylinder;
  return shape;
}

/// Leaves hide more cells in spring than in autumn.
double leaf_density(double most, const Pass& pass) { return most * (1 - 0.4 * pass.season()); }

}  // namespace

Shape Street::leaves(double width, double height, double most, Random& random) const {
  Shape shape = box(Material::leaves, width, width * random.uniform(0.8, 1.2), height);
  shape.kind = Shape::Kind::canopy;
  shape.density = leaf_density(most, pass_);
  shape.seed = random.bits();
  return shape;
}

Street::Street(const Pass& pass)
    : pass_(pass),
      road_(pass.town),
      low_x_(-kMargin),
      low_y_(-kMargin),
      wide_(static_cast<std::size_t>(2 * kMargin / kCell)),
      cells_(wide_ * wide_) {
  for (const double sign : {-1.0, 1.0}) {
    add_side(sign);
    add_trees(sign);
    add_parked(sign);
  }
  add_movers();
  for (const Shape& shape : shapes_) still_.push_back(shape.centre);
}

std::size_t Street::cell_of(double x, double y) const {
  const auto at = [&](double value, double low) {
    return static_cast<std::size_t>(std::clamp((value - low) / kCell, 0.0, static_cast<double>(wide_ - 1)));
  };
  return at(y, low_y_) * wide_ + at(x, low_x_);
}

void Street::add(const Shape& shape) {
  const double reach = shape.reach() + kWindReach;
  const auto number = static_cast<std::uint32_t>(shapes_.size());
  shapes_.push_back(shape);
  for (double y = shape.centre.y - reach; y < shape.centre.y + reach + kCell; y += kCell)
    for (double x = shape.centre.x - reach; x < shape.centre.x + reach + kCell; x += kCell) {
      auto& cell = cells_[cell_of(std::min(x, shape.centre.x + reach), std::min(y, shape.centre.y + reach))];
      if (cell.empty() || cell.back() != number) cell.push_back(number);
    }
}

/// Along the road and `side` metres left of its middle, standing `above` metres over the ground there.
void Street::add_at(double metres, double side, Shape shape, double above, double turn) {
  const RoadPoint point = road_.at(metres);
  const Place place = point.beside(side);
  const auto [sine, cosine] = sine_cosine(turn);
  shape.centre = {place.x, place.y, road_.height(place) + above + shape.half.z};
  shape.cosine = point.along.x * cosine - point.along.y * sine;
  shape.sine = point.along.y * cosine + point.along.x * sine;
  add(shape);
}

void Street::add_house(double metres, double sign, double width, Random& random) {
  const double depth = random.uniform(9, 14);
  const double front = random.uniform(10, 19);
  const double height = random.chance(0.4) ? random.uniform(9, 16) : random.uniform(5.5, 8);
  Shape house = box(Material::wall, width, depth, height + 1);
  house.kind = Shape::Kind::facade;
  add_at(metres + width / 2, sign * (front + depth / 2), house, -1);
  if (random.chance(0.5))  // a porch or bay
    add_at(metres + random.uniform(0.2, 0.8) * width, sign * (front - 0.4), box(Material::wall, 2.4, 1.6, 3.2), -0.3);
  if (random.chance(0.4)) {
    Shape hedge = box(Material::leaves, width * 0.8, 0.9, random.uniform(0.9, 1.7));
    hedge.kind = Shape::Kind::hedge;
    hedge.density = leaf_density(0.35, pass_);
    hedge.seed = random.bits();
    add_at(metres + width / 2, sign * 9.7, hedge, 0);
  }
}

void Street::add_garden(double metres, double sign, double width, Random& random) {
  const double kind = random.uniform();
  Shape border = box(Material::wood, width, 0.06, random.uniform(1, 1.8));
  border.kind = Shape::Kind::fence;
  if (kind < 0.5) {
    border = box(Material::leaves, width, 1.2, random.uniform(1.2, 2.4));
    border.kind = Shape::Kind::hedge;
    border.density = leaf_density(0.4, pass_);
  } else if (kind < 0.65) {
    border = box(Material::wall, width, 0.3, random.uniform(0.6, 2));
  }
  border.seed = random.bits();
  add_at(metres + width / 2, sign * 9.9, border, 0);
  for (int plant = 0; plant < 26; ++plant) {
    const double along = metres + random.uniform(0, width);
    const double side = sign * random.uniform(10.5, 42);
    if (random.chance(0.3)) {  // a tree
      add_at(along, side, pole(Material::wood, random.uniform(0.08, 0.2), 3.5), -0.1);
      add_at(along, side, leaves(random.uniform(3, 7), random.uniform(3, 8), 0.2, random), random.uniform(0.6, 1.8));
    } else if (random.chance(0.3)) {  // a shed, a bin, a bench
      add_at(along, side,
             box(Material::wood, random.uniform(0.4, 2.5), random.uniform(0.4, 2), random.uniform(0.5, 2.2)), -0.2,
             random.uniform(0, kPi));
    } else {
      add_at(along, side, leaves(random.uniform(0.8, 3.2), random.uniform(0.6, 2.8), 0.25, random), -0.2);
    }
  }
}

void Street::add_side(double sign) {
  Random random(mixed(pass_.town, 11, sign > 0));
  unsigned plot = 0;
  for (double at = 0; at < road_.length(); ++plot) {
    const double width = random.uniform(12, 26);
    // Five plots change in a season: a house goes up, or comes down.
    const bool changes = plot % 29 == 7 && pass_.season() > fraction(mixed(pass_.town, plot, 3));
    if ((random.uniform() < 0.45) != changes) {
      add_house(at, sign, width - random.uniform(0.5, 4), random);
    } else {
      add_garden(at, sign, width, random);
    }
    // What closes the view behind: houses of the next street.
    Shape behind = box(Material::wall, width * 0.8, 8, random.uniform(4, 11));
    behind.kind = Shape::Kind::facade;
    add_at(at + width / 2, sign * random.uniform(44, 60), behind, -1, random.uniform(-0.3, 0.3));
    at += width;
  }
}

void Street::add_trees(double sign) {
  Random random(mixed(pass_.town, 12, sign > 0));
  for (double at = 3; at < road_.length(); at += random.uniform(7, 17)) {
    const double side = sign * random.uniform(6.8, 7.5);
    const double kind = random.uniform();
    if (kind < 0.30) {
      add_at(at, side, pole(Material::metal, random.uniform(0.05, 0.11), random.uniform(4, 9)), 0);
      if (kind < 0.12) add_at(at, side, box(Material::paint, 0.05, 0.6, 0.8), 2.1);
    } else if (kind < 0.40) {
      add_at(at, side, box(Material::metal, 0.8, 0.5, 1.3), 0);
    } else if (kind < 0.75) {
      const double trunk = random.uniform(1.9, 3.2);
      add_at(at, side, pole(Material::wood, random.uniform(0.1, 0.25), trunk + 1.5), -0.1);
      add_at(at, side, leaves(random.uniform(3, 6.5), random.uniform(3.5, 7), 0.2, random), trunk - 0.8);
    }
  }
}

void Street::add_car(double metres, double side, Random& random, const auto& put) {
  const double length = random.uniform(3.7, 4.9);
  const double width = random.uniform(1.65, 1.9);
  const double height = random.chance(0.15) ? random.uniform(1.9, 2.3) : random.uniform(1.4, 1.7);
  put(metres, side, box(Material::paint, length, width, 0.75), 0.2);
  put(metres - 0.1 * length, side, box(Material::glass, 0.55 * length, width - 0.25, height - 0.95), 0.95);
  put(metres - 0.1 * length, side, box(Material::paint, 0.5 * length, width - 0.3, 0.08), height - 0.04);
  for (const double wheel : {-0.32, 0.32}) put(metres + wheel * length, side, box(Material::metal, 0.6, width, 0.6), 0);
}

/// Each place to park is taken by another car each day, or by none.
void Street::add_parked(double sign) {
  const double share = 0.6 + 0.2 * fraction(mixed(pass_.town, pass_.day, 5));
  const auto slots = static_cast<unsigned>(road_.length() / 6.2);
  Random places(mixed(pass_.town, 13, sign > 0));
  for (unsigned slot = 0; slot < slots; ++slot) {
    const bool is_entrance = places.chance(0.45);
    Random random(mixed(pass_.seed(), slot, sign > 0, 13));
    if (is_entrance || !random.chance(share)) continue;
    const double metres = 6.2 * slot + 0.3 * random.normal();
    const double side = sign * kParkedSide + 0.1 * random.normal();
    add_car(metres, side, random,
            [&](double at, double beside, const Shape& shape, double above) { add_at(at, beside, shape, above); });
  }
}

void Street::add_movers() {
  Random random(mixed(pass_.seed(), 14));
  const int cars = 10 + static_cast<int>(random.uniform(0, 50));
  for (int car = 0; car < cars; ++car) {
    const double metres = random.uniform(0, road_.length());
    if (random.chance(0.4)) {  // a cyclist, beside the lane of the sensor's vehicle, which meets nobody in its own
      movers_.push_back({pole(Material::cloth, 0.3, 1.7), metres, -4.0, random.uniform(3, 7)});
      continue;
    }
    const double speed = random.uniform(4, 14);
    add_car(metres, 1.8, random, [&](double at, double side, Shape shape, double above) {
      shape.centre.z = above;
      movers_.push_back({shape, at, side, -speed});
    });
  }
  for (int walker = 0; walker < 60; ++walker) {
    Shape shape = pole(Material::cloth, random.uniform(0.18, 0.28), random.uniform(1.5, 1.85));
    const double sign = random.chance(0.5) ? 1 : -1;
    movers_.push_back(
        {shape, random.uniform(0, road_.length()), sign * random.uniform(6.6, 8.6), random.uniform(-1.6, 1.6)});
  }
}

void Street::set_time(double seconds) {
  moving_.clear();
  for (const Mover& mover : movers_) {
    const RoadPoint point = road_.at(mover.start + mover.speed * seconds);
    const Place place = point.beside(mover.side);
    Shape shape = mover.shape;
    shape.centre = {place.x, place.y, road_.height(place) + mover.shape.centre.z + shape.half.z};
    shape.cosine = point.along.x;
    shape.sine = point.along.y;
    moving_.push_back(shape);
  }
  const auto tick = static_cast<std::uint64_t>(std::floor(seconds * 1000 + 0.5));
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    if (shapes_[i].kind != Shape::Kind::canopy) continue;
    Random wind(mixed(pass_.seed(), i, tick));
    const double strength = 0.03 + 0.05 * fraction(mixed(pass_.seed(), 15));
    shapes_[i].centre.x = still_[i].x + strength * wind.normal();
    shapes_[i].centre.y = still_[i].y + strength * wind.normal();
  }
}

Meeting Street::meet(const Ray& ray, double most, Random& random) const {
  Meeting meeting;
  meeting.range = most;
  const double flat = std::sqrt(ray.along.x * ray.along.x + ray.along.y * ray.along.y);
  for (const Shape& shape : moving_) {
    const double x = shape.centre.x - ray.from.x;
    const double y = shape.centre.y - ray.from.y;
    const double reach = shape.reach();
    const double ahead = (x * ray.along.x + y * ray.along.y) / flat;
    if (ahead < -reach || x * x + y * y - ahead * ahead > reach * reach) continue;
    shape.meet(ray, random, meeting);
  }
  // From cell to cell along the ray: the ground at the border of each, and the shapes within.
  const auto border = [&](double from, double along, double low) {
    const double cell = (from - low) / kCell;
    const double next = along > 0 ? std::floor(cell) + 1 : std::ceil(cell) - 1;
    return along == 0 ? 1e30 : (low + next * kCell - from) / along;
  };
  const auto height_over_ground = [&](double range) {
    return ray.from.z + ray.along.z * range -
           road_.height({ray.from.x + ray.along.x * range, ray.from.y + ray.along.y * range});
  };
  double next_x = border(ray.from.x, ray.along.x, low_x_);
  double next_y = border(ray.from.y, ray.along.y, low_y_);
  double range = 0;
  double over = height_over_ground(0);
  std::uint32_t last_shape = UINT32_MAX;
  while (range < meeting.range) {
    const double end = std::min({next_x, next_y, most});
    const double middle = (range + end) / 2;
    for (const std::uint32_t number :
         cells_[cell_of(ray.from.x + ray.along.x * middle, ray.from.y + ray.along.y * middle)]) {
      if (number == last_shape) continue;
      shapes_[number].meet(ray, random, meeting);
      last_shape = number;
    }
    // A cell is cut where the ray comes near the ground, so that kerbs are not stepped over.
    const unsigned steps = over < 1.0 || over < -ray.along.z * (end - range) * 1.5 ? 4 : 1;
    const double begin = range;
    for (unsigned step = 1; step <= steps; ++step) {
      const double to = begin + (end - begin) * step / steps;
      const double over_then = height_over_ground(to);
      if (over_then > 0) {
        range = to;
        over = over_then;
        continue;
      }
      double low = range;
      double high = to;
      double over_low = over;
      double over_high = over_then;
      for (int cut = 0; cut < 5; ++cut) {
        const double at = cut == 4 ? (low + high) / 2 : low + (high - low) * over_low / (over_low - over_high);
        const double over_at = height_over_ground(at);
        (over_at > 0 ? low : high) = at;
        (over_at > 0 ? over_low : over_high) = over_at;
      }
      if (high >= meeting.range) return meeting;
      const double side = std::abs(road_.beside({ray.from.x + ray.along.x * high, ray.from.y + ray.along.y * high}));
      const Material ground = side < Road::kHalfWidth  ? Material::road
                              : side < Road::kPavement ? Material::pavement
                                                       : Material::earth;
      double grown = 0;  // grass stands up to 10 cm above the earth
      if (ground == Material::earth) grown = random.uniform() * 0.1 * (1 - 0.5 * pass_.season());
      const double steep = std::max(-ray.along.z, 0.02);
      return {std::max(high - grown / steep, range * 0.9), steep, ground};
    }
    if (end >= most) break;
    if (next_x <= end) next_x += kCell / std::abs(ray.along.x);
    if (next_y <= end) next_y += kCell / std::abs(ray.along.y);
  }
  return meeting;
}

}  // namespace quern::drives

// What stands beside and on the road, and where a ray meets it.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/lidar/numbers.h"

namespace quern::drives {

struct Vector3 {
  double x = 0;
  double y = 0;
  double z = 0;
};

struct Ray {
  Vector3 from;
  Vector3 along;  ///< unit length
};

enum class Material : std::uint8_t { road, pavement, earth, wall, glass, metal, paint, leaves, wood, cloth };

struct Meeting {
  double range = 1e30;
  double incidence = 1;  ///< cosine of the angle to the surface's normal
  Material material = Material::road;
};

/// A box turned about z, an upright cylinder, or a volume of leaves: an ellipsoid or a box that rays pass in part.
struct Shape {
  enum class Kind : std::uint8_t { box, facade, fence, cylinder, canopy, hedge };

  Kind kind = Kind::box;
  Material material = Material::wall;
  Vector3 centre;
  double cosine = 1;  ///< of the turn about z
  double sine = 0;
  Vector3 half;        ///< sides or radii, halved
  double density = 0;  ///< of leaves: share of cells that hold some
  std::uint64_t seed = 0;

  /// Radius around the centre seen from above.
  double reach() const { return std::sqrt(half.x * half.x + half.y * half.y); }
  /// Takes the nearest meeting in front of `meeting.range`.
  void meet(const Ray& ray, Random& random, Meeting& meeting) const;

 private:
  void meet_box(const Ray& turned, Random& random, Meeting& meeting) const;
  void meet_cylinder(const Ray& turned, Meeting& meeting) const;
  void meet_leaves(const Ray& ray, double enter, double leave, Random& random, Meeting& meeting) const;
};

}  // namespace quern::drives

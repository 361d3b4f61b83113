#include "tests/unit_lidar/clouds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace quern::lidar_test {

void TestCloud::add(float x, float y, float z) {
  for (const float at : {x, y, z}) words.push_back(std::bit_cast<std::uint32_t>(at));
  intensity.push_back(static_cast<std::uint8_t>(points() * 7 / 3));
}

namespace {

/// Distance along a ray to ground, four walls or a few boxes; none beyond 80 m. Rational arithmetic only.
double ray_range(double dx, double dy, double dz) {
  double range = 80;
  if (dz < 0) range = std::min(range, 1.7 / -dz);
  for (const double wall : {12.0, -9.0}) {
    if (wall * dx > 0) range = std::min(range, wall / dx);
    if (wall * 2 * dy > 0) range = std::min(range, wall * 2 / dy);
  }
  const double boxes[3][3] = {{5, 2, 1}, {-6, 7, 0.5}, {3, -11, 1.5}};
  for (const auto& box : boxes) {
    const double along = box[0] * dx + box[1] * dy;
    const double across = box[0] * dy - box[1] * dx;
    const double length = box[0] * box[0] + box[1] * box[1];
    if (along > 0 && across * across < box[2] * box[2] * (dx * dx + dy * dy) * 0.5)
      range = std::min(range, length / along);
  }
  return range;
}

float rounded(double x, bool decimal) { return static_cast<float>(decimal ? std::floor(x * 1000 + 0.5) / 1000 : x); }

}  // namespace

TestCloud spinning_scan(unsigned rings, unsigned columns, std::uint64_t seed, bool decimal) {
  TestCloud cloud;
  cloud.name = "spinning";
  Random random(seed);
  for (unsigned ring = 0; ring < rings; ++ring) {
    const double dz = 0.03 - 0.45 * ring / rings;
    // The unit circle by a rational parametrisation of its quarters, so that no sine decides a bit.
    for (unsigned column = 0; column < columns; ++column) {
      const double t = 4.0 * column / columns;
      const int quarter = static_cast<int>(t);
      const double u = t - quarter;
      const double c = (1 - u * u) / (1 + u * u), s = 2 * u / (1 + u * u);
      const double dx = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
      const double dy = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
      if (random.below(20) == 0) continue;
      const double range = ray_range(dx, dy, dz) + 0.015 * random.signed_unit();
      if (range > 79) continue;
      cloud.add(rounded(dx * range, decimal), rounded(dy * range, decimal), rounded(dz * range, decimal));
      cloud.intensity.back() =
          static_cast<std::uint8_t>(40 + static_cast<int>(range) + static_cast<int>(random.below(12)));
    }
  }
  return cloud;
}

namespace {

TestCloud named(const char* name) {
  TestCloud cloud;
  cloud.name = name;
  return cloud;
}

TestCloud non_finite() {
  TestCloud cloud = named("non_finite");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  cloud.add(1, 2, 3);
  cloud.add(std::numeric_limits<float>::quiet_NaN(), 2, 3);
  cloud.add(1, kInfinity, 3);
  cloud.add(1, 2, -kInfinity);
  cloud.words.insert(cloud.words.end(), {0xFFC12345U, 0x7F812345U, 0x80000000U});
  cloud.intensity.push_back(9);
  cloud.add(4, 5, 6);
  return cloud;
}

TestCloud magnitudes() {
  TestCloud cloud = named("magnitudes");
  for (const float scale : {1e-45F, 1e-38F, 1e-30F, 1e-6F, 1.0F, 1e3F, 1e6F, 1e9F, 1e20F, 3.4e38F})
    for (const float sign : {1.0F, -1.0F}) cloud.add(sign * scale, scale * 0.5F, -sign * scale);
  cloud.add(-0.0F, 0.0F, -0.0F);
  return cloud;
}

/// `distance` metres away, 1 cm apart.
TestCloud far_away(const char* name, float distance) {
  TestCloud cloud = named(name);
  for (int i = 0; i < 500; ++i)
    cloud.add(distance + 0.01F * static_cast<float>(i % 25), -distance + 0.01F * static_cast<float>(i / 25),
              distance / 3);
  return cloud;
}

TestCloud crowd(const char* name, std::size_t points, double size) {
  TestCloud cloud = named(name);
  Random random(points);
  for (std::size_t i = 0; i < points; ++i)
    cloud.add(static_cast<float>(3 + size * random.signed_unit()), static_cast<float>(size * random.signed_unit()),
              static_cast<float>(size * random.signed_unit()));
  return cloud;
}

TestCloud integers(const char* name, std::int32_t low, std::uint32_t range) {
  TestCloud cloud = named(name);
  cloud.type = codec::lidar::CoordinateType::i32;
  Random random(range);
  for (int i = 0; i < 300; ++i) {
    for (int axis = 0; axis < 3; ++axis)
      cloud.words.push_back(static_cast<std::uint32_t>(low) + static_cast<std::uint32_t>(random.below(range)));
    cloud.intensity.push_back(static_cast<std::uint8_t>(random.next()));
  }
  return cloud;
}

}  // namespace

std::vector<codec::lidar::PredictedPoint> near_prediction(const TestCloud& cloud, std::uint64_t seed,
                                                          std::uint64_t spread) {
  Random random(seed);
  std::vector<codec::lidar::PredictedPoint> prediction;
  for (std::size_t i = 0; i < cloud.points(); ++i) {
    codec::lidar::PredictedPoint point{};
    point.weight = static_cast<std::uint8_t>(1 + i % 4);
    bool near = true;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const float at = std::bit_cast<float>(cloud.words[3 * i + axis]);
      near = near && std::fabs(at) < 100;
      if (near)
        point.at[axis] = static_cast<std::int64_t>(at * 10000) +
                         static_cast<std::int64_t>(random.below(2 * spread + 1)) - static_cast<std::int64_t>(spread);
    }
    if (near && random.below(8) != 0) prediction.push_back(point);
  }
  return prediction;
}

std::vector<codec::lidar::PredictedPoint> known_prediction(const TestCloud& cloud, std::uint64_t seed,
                                                           std::uint64_t spread) {
  auto prediction = near_prediction(cloud, seed, spread);
  Random random(seed + 1);
  const std::size_t expected = prediction.size();
  for (std::size_t i = 0; i < expected; ++i) {
    codec::lidar::PredictedPoint point = prediction[random.below(expected)];
    point.weight = 0;
    if (i % 3 == 0) point.at[i / 3 % 3] += static_cast<std::int64_t>(20 * spread);
    prediction.push_back(point);
  }
  // Not expected any more, only known.
  for (std::size_t i = 0; i < expected; i += 5) prediction[i].weight = 0;
  return prediction;
}

std::vector<TestCloud> adversarial_clouds() {
  std::vector<TestCloud> clouds;
  clouds.push_back(named("empty"));
  clouds.push_back(named("one"));
  clouds.back().add(1.5F, -2.25F, 1000.125F);
  clouds.push_back(non_finite());
  clouds.push_back(named("only_non_finite"));
  clouds.back().add(std::numeric_limits<float>::quiet_NaN(), 0, 0);
  clouds.push_back(magnitudes());
  clouds.push_back(named("all_equal"));
  for (int i = 0; i < 1000; ++i) clouds.back().add(7.25F, 8.5F, -0.125F);
  clouds.push_back(named("zeros"));
  for (int i = 0; i < 100; ++i) clouds.back().add(0, 0, 0);
  clouds.push_back(far_away("ten_km", 1e4F));
  clouds.push_back(far_away("hundred_km", 1e5F));
  clouds.push_back(crowd("crowd_mm", 3000, 0.001));
  clouds.push_back(crowd("crowd_m", 3000, 1));
  clouds.push_back(crowd("spread_km", 300, 20000));
  clouds.push_back(integers("integers_near", -500, 1000));
  clouds.push_back(integers("integers_all", INT32_MIN, UINT32_MAX));
  clouds.push_back(named("line"));
  for (int i = 0; i < 2000; ++i) clouds.back().add(0.01F * static_cast<float>(i), 0, 0);
  return clouds;
}

TestCloud random_cloud(std::uint64_t seed) {
  Random random(seed);
  TestCloud cloud;
  cloud.name = "random " + std::to_string(seed);
  const std::uint64_t points = random.below(400);
  const unsigned kind = static_cast<unsigned>(random.below(6));
  const double size = std::ldexp(1.0, static_cast<int>(random.below(22)) - 8);
  for (std::uint64_t i = 0; i < points; ++i) {
    double at[3];
    for (double& a : at) a = size * random.signed_unit();
    if (kind == 1) at[2] = 0.01 * at[0];
    if (kind == 2) at[0] = std::floor(at[0] * 100) / 100;
    if (kind == 3 && i % 3 != 0) at[0] = at[1] = at[2] = size;
    if (kind == 4) at[0] += 1e4;
    if (kind == 5 && i % 17 == 0) {
      for (int axis = 0; axis < 3; ++axis) cloud.words.push_back(static_cast<std::uint32_t>(random.next()));
      cloud.intensity.push_back(static_cast<std::uint8_t>(i));
      continue;
    }
    cloud.add(static_cast<float>(at[0]), static_cast<float>(at[1]), static_cast<float>(at[2]));
  }
  return cloud;
}

}  // namespace quern::lidar_test

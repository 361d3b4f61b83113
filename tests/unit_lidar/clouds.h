// Clouds for the tests: a synthetic scan of a spinning sensor, and clouds that are hard for the codec.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codecs/lidar/point_codec.h"

namespace quern::lidar_test {

/// SplitMix64: the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  /// Within [-1, 1].
  double signed_unit() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1; }

 private:
  std::uint64_t state_;
};

struct TestCloud {
  std::string name;
  codec::lidar::CoordinateType type = codec::lidar::CoordinateType::f32;
  std::vector<std::uint32_t> words;
  std::vector<std::uint8_t> intensity;  ///< one byte a point

  bool is_integer() const { return type == codec::lidar::CoordinateType::i32; }
  std::size_t points() const { return words.size() / 3; }
  void add(float x, float y, float z);
};

/// `rings` x `columns` returns from ground, walls and boxes around a sensor 1.7 m above ground, ring after ring, in whole
/// millimetres where `decimal`.
TestCloud spinning_scan(unsigned rings, unsigned columns, std::uint64_t seed, bool decimal);

/// Most of a cloud's finite points within 100 m, each coordinate moved by up to `spread` units.
std::vector<codec::lidar::PredictedPoint> near_prediction(const TestCloud& cloud, std::uint64_t seed,
                                                          std::uint64_t spread);

/// The same, and as many points again that are known: some where points are expected, some elsewhere.
std::vector<codec::lidar::PredictedPoint> known_prediction(const TestCloud& cloud, std::uint64_t seed,
                                                           std::uint64_t spread);

/// What breaks careless codecs: empty, one point, NaN, infinities, duplicates, far away, denormal, dense, grids.
std::vector<TestCloud> adversarial_clouds();

/// A cloud of up to 400 points of a shape that the seed chooses.
TestCloud random_cloud(std::uint64_t seed);

}  // namespace quern::lidar_test

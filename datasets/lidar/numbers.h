// Numbers of the generator: the same on every machine, because they come of + - * / and sqrt alone, which IEEE 754
// rounds in one way. The functions of <cmath> differ between libraries.
#pragma once

#include <cmath>
#include <cstdint>

namespace quern::drives {

inline constexpr double kPi = 3.14159265358979323846;

struct SineCosine {
  double sine = 0;
  double cosine = 1;
};

/// Of any angle below 10^6 in radians, to about 10^-12: Taylor series within half a quarter turn.
inline SineCosine sine_cosine(double angle) {
  const double quarters = std::floor(angle / (kPi / 2) + 0.5);
  const double x = angle - quarters * (kPi / 2);
  const double xx = x * x;
  double sine = 1;
  double cosine = 1;
  for (int n = 7; n > 0; --n) {
    sine = 1 - sine * xx / ((2 * n) * (2 * n + 1));
    cosine = 1 - cosine * xx / ((2 * n - 1) * (2 * n));
  }
  sine *= x;
  switch (static_cast<std::int64_t>(quarters) & 3) {
    case 0: return {sine, cosine};
    case 1: return {cosine, -sine};
    case 2: return {-sine, -cosine};
    default: return {-cosine, sine};
  }
}

inline double degrees(double angle) { return angle * (kPi / 180); }

/// A well mixed number of some others.
template <class... More>
constexpr std::uint64_t mixed(std::uint64_t first, More... more) {
  std::uint64_t sum = 0x9E3779B97F4A7C15;
  const auto take = [&](std::uint64_t part) {
    sum = (sum ^ part) + 0x9E3779B97F4A7C15;
    sum = (sum ^ sum >> 30) * 0xBF58476D1CE4E5B9;
    sum = (sum ^ sum >> 27) * 0x94D049BB133111EB;
    sum ^= sum >> 31;
  };
  take(first);
  (take(static_cast<std::uint64_t>(more)), ...);
  return sum;
}

/// From 0 to below 1.
constexpr double fraction(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// Random numbers by their place in a sequence (SplitMix64), so that every scan has a sequence of its own.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() { return mixed(state_++); }
  double uniform() { return fraction(bits()); }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  bool chance(double probability) { return uniform() < probability; }
  /// Nearly normal, of variance 1: twelve uniform numbers of 16 bits.
  double normal() {
    double sum = -6;
    for (int word = 0; word < 3; ++word) {
      const std::uint64_t four = bits();
      for (int k = 0; k < 4; ++k) sum += (static_cast<double>(four >> (16 * k) & 0xFFFF) + 0.5) * 0x1p-16;
    }
    return sum;
  }

 private:
  std::uint64_t state_;
};

}  // namespace quern::drives

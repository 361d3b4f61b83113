// Pressure between the waves by bisection, then the fan is sampled.
#include "tests/unit_flow/exact_riemann.h"

#include <algorithm>
#include <cmath>

namespace quern::flow::test {
namespace {

double sound(const GasState& s, double gamma) { return std::sqrt(gamma * s.pressure / s.density); }

/// Change of velocity across the wave that takes `s` to pressure `p`: a shock when p is higher, else a rarefaction.
double velocity_change(const GasState& s, double gamma, double p) {
  if (p > s.pressure) {
    const double a = 2.0 / ((gamma + 1.0) * s.density);
    const double b = (gamma - 1.0) / (gamma + 1.0) * s.pressure;
    return (p - s.pressure) * std::sqrt(a / (p + b));
  }
  return 2.0 * sound(s, gamma) / (gamma - 1.0) * (std::pow(p / s.pressure, 0.5 * (gamma - 1.0) / gamma) - 1.0);
}

/// The state on the left of the contact; the caller mirrors what lies on the right of it.
GasState sample_left(const GasState& s, double gamma, double p_star, double u_star, double speed) {
  const double c = sound(s, gamma);
  const double g = (gamma - 1.0) / (gamma + 1.0);
  if (p_star > s.pressure) {
    const double ratio = p_star / s.pressure;
    const double shock = s.velocity - c * std::sqrt(0.5 * ((gamma + 1.0) * ratio + gamma - 1.0) / gamma);
    if (speed < shock) return s;
    return {s.density * (ratio + g) / (g * ratio + 1.0), u_star, p_star};
  }
  const double c_star = c * std::pow(p_star / s.pressure, 0.5 * (gamma - 1.0) / gamma);
  if (speed < s.velocity - c) return s;
  if (speed > u_star - c_star) return {s.density * std::pow(p_star / s.pressure, 1.0 / gamma), u_star, p_star};
  const double u = 2.0 / (gamma + 1.0) * (c + 0.5 * (gamma - 1.0) * s.velocity + speed);
  const double c_fan = u - speed;
  const double density = s.density * std::pow(c_fan / c, 2.0 / (gamma - 1.0));
  return {density, u, s.pressure * std::pow(c_fan / c, 2.0 * gamma / (gamma - 1.0))};
}

}  // namespace

GasState exact_riemann(const GasState& left, const GasState& right, double gamma, double speed) {
  double low = 0.0;
  double high = 100.0 * std::max(left.pressure, right.pressure);
  for (int i = 0; i < 200; ++i) {
    const double p = 0.5 * (low + high);
    const double excess =
        velocity_change(left, gamma, p) + velocity_change(right, gamma, p) + right.velocity - left.velocity;
    (excess > 0.0 ? high : low) = p;
  }
  const double p_star = 0.5 * (low + high);
  const double u_star = left.velocity - velocity_change(left, gamma, p_star);
  if (speed <= u_star) return sample_left(left, gamma, p_star, u_star, speed);
  GasState mirrored = sample_left({right.density, -right.velocity, right.pressure}, gamma, p_star, -u_star, -speed);
  mirrored.velocity = -mirrored.velocity;
  return mirrored;
}

}  // namespace quern::flow::test

// The HLLC approximate Riemann solver for an ideal gas (Toro, Spruce, Speares, Shock Waves 4 (1994) 25), in the frame
// of one face: velocities are normal and tangential to it. Branch-free, so that a loop over faces becomes vector code.
#pragma once

#include <algorithm>
#include <cmath>

namespace quern::flow {

/// A primitive state at a face.
struct FaceState {
  double density;
  double normal;
  double tangent1;
  double tangent2;
  double pressure;
};

/// What crosses a unit of face in a unit of time.
struct FaceFlux {
  double mass;
  double normal;
  double tangent1;
  double tangent2;
  double energy;
};

/// Energy per volume, internal and kinetic.
inline double total_energy(const FaceState& s, double gamma) {
  const double speed2 = s.normal * s.normal + s.tangent1 * s.tangent1 + s.tangent2 * s.tangent2;
  return s.pressure / (gamma - 1.0) + 0.5 * s.density * speed2;
}

/// Flux through the face between `l` and `r`. Both states need a positive density and pressure; otherwise the result is
/// not finite, which the caller finds in the state it computes.
inline FaceFlux hllc_flux(const FaceState& l, const FaceState& r, double gamma) {
  const double sound_l = std::sqrt(gamma * l.pressure / l.density);
  const double sound_r = std::sqrt(gamma * r.pressure / r.density);
  const double slowest = std::min(l.normal - sound_l, r.normal - sound_r);
  const double fastest = std::max(l.normal + sound_l, r.normal + sound_r);
  const double mass_l = l.density * (slowest - l.normal);
  const double mass_r = r.density * (fastest - r.normal);
  const double contact = (r.pressure - l.pressure + l.normal * mass_l - r.normal * mass_r) / (mass_l - mass_r);

  // The flux of the side the contact moves away from, plus its outer wave when that wave runs against the side.
  const bool from_left = contact >= 0.0;
  const FaceState k{from_left ? l.density : r.density, from_left ? l.normal : r.normal,
                    from_left ? l.tangent1 : r.tangent1, from_left ? l.tangent2 : r.tangent2,
                    from_left ? l.pressure : r.pressure};
  const double wave = from_left ? slowest : fastest;
  const double wave_mass = from_left ? mass_l : mass_r;
  const double jump_speed = from_left ? std::min(slowest, 0.0) : std::max(fastest, 0.0);

  const double energy = total_energy(k, gamma);
  const double star_density = wave_mass / (wave - contact);
  const double star_energy =
      star_density * (energy / k.density + (contact - k.normal) * (contact + k.pressure / wave_mass));
  const double mass = k.density * k.normal;
  return {mass + jump_speed * (star_density - k.density),
          mass * k.normal + k.pressure + jump_speed * (star_density * contact - mass),
          mass * k.tangent1 + jump_speed * (star_density - k.density) * k.tangent1,
          mass * k.tangent2 + jump_speed * (star_density - k.density) * k.tangent2,
          (energy + k.pressure) * k.normal + jump_speed * (star_energy - energy)};
}

}  // namespace quern::flow

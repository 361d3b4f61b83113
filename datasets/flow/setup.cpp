// The two built-in set-ups. Their constants are the usual ones of the literature on these problems.
#include "datasets/flow/setup.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace quern::flow {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;
constexpr std::array<std::string_view, 2> kSetupNames{"kelvin-helmholtz", "sedov"};

/// One plane wave along x and z.
struct Mode {
  double waves_x;
  double waves_z;
  double amplitude;
  double phase;
};

/// The next number of a splitmix64 sequence, in [0, 1).
double next_uniform(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t v = state;
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
  v ^= v >> 31;
  return static_cast<double>(v >> 11) * 0x1p-53;
}

using Modes = std::array<Mode, 8>;

Modes make_modes(std::uint64_t& state) {
  constexpr std::array<std::array<double, 2>, 8> kWaves{
      {{1, 0}, {1, 1}, {1, -2}, {2, 0}, {2, 1}, {2, -1}, {3, 2}, {4, -1}}};
  Modes modes{};
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const double size = std::hypot(kWaves[i][0], kWaves[i][1]);
    modes[i] = {kWaves[i][0], kWaves[i][1], 0.02 / size, kTwoPi * next_uniform(state)};
  }
  return modes;
}

/// Sum of the modes at fractions of the domain's lengths.
double sum_modes(const Modes& modes, double x, double z) {
  double sum = 0.0;
  for (const Mode& m : modes) sum += m.amplitude * std::sin(kTwoPi * (m.waves_x * x + m.waves_z * z) + m.phase);
  return sum;
}

/// Cells whose centre lies within `radius` of the middle of the domain.
std::size_t count_cells_within(const Grid& grid, double radius) {
  std::array<std::size_t, kAxes> begin{};
  std::array<std::size_t, kAxes> end{};
  const auto reach = static_cast<std::size_t>(radius / grid.spacing) + 2;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const std::size_t middle = grid.global[axis] / 2;
    begin[axis] = middle > reach ? middle - reach : 0;
    end[axis] = std::min(grid.global[axis], middle + reach);
  }
  Grid whole = grid;
  whole.cells = grid.global;
  whole.origin = {0, 0, 0};
  std::size_t count = 0;
  for (std::size_t z = begin[0]; z < end[0]; ++z)
    for (std::size_t y = begin[1]; y < end[1]; ++y)
      for (std::size_t x = begin[2]; x < end[2]; ++x) {
        const double dz = whole.centre(0, z), dy = whole.centre(1, y), dx = whole.centre(2, x);
        if (dz * dz + dy * dy + dx * dx < radius * radius) ++count;
      }
  return count;
}

}  // namespace

Setup kelvin_helmholtz(const Grid& grid, std::uint64_t seed) {
  const std::array<double, kAxes> length{grid.length(0), grid.length(1), grid.length(2)};
  std::uint64_t state = seed;
  const Modes lift = make_modes(state);
  const Modes twist = make_modes(state);
  const bool deep = grid.active(0);
  auto initial = [=](const std::array<double, kAxes>& at) {
    // A signed distance to the two layers that is itself periodic in y, so that the profile has no seam.
    const double distance = -length[1] / kTwoPi * std::cos(kTwoPi * (at[1] / length[1] + 0.5));
    const double thickness = 0.02 * length[1];
    const double inside = 0.5 * (1.0 + std::tanh(distance / thickness));
    const double near = std::exp(-0.25 * distance * distance / (thickness * thickness));
    const double x = at[2] / length[2], z = at[0] / length[0];
    Primitive p;
    p.density = 1.0 + inside;
    p.velocity = {deep ? near * sum_modes(twist, x, z) : 0.0, near * sum_modes(lift, x, z), inside - 0.5};
    p.pressure = 2.5;
    return p;
  };
  return {kSetupNames[0], 5.0 / 3.0, BoundaryKind::periodic, initial};
}

Setup sedov(const Grid& grid) {
  constexpr double kGamma = 1.4;
  // With this energy the shock of the three-dimensional blast is at radius 1 at time 1.
  constexpr double kBlastEnergy = 0.851072;
  const double radius = 3.5 * grid.spacing;
  double volume = static_cast<double>(count_cells_within(grid, radius));
  for (std::size_t axis = 0; axis < kAxes; ++axis)
    if (grid.active(axis)) volume *= grid.spacing;
  const double blast_pressure = (kGamma - 1.0) * kBlastEnergy / volume;
  auto initial = [=](const std::array<double, kAxes>& at) {
    const double distance2 = at[0] * at[0] + at[1] * at[1] + at[2] * at[2];
    Primitive p;
    p.density = 1.0;
    p.pressure = distance2 < radius * radius ? blast_pressure : 1e-5;
    return p;
  };
  return {kSetupNames[1], kGamma, BoundaryKind::outflow, initial};
}

std::span<const std::string_view> setup_names() { return kSetupNames; }

Result<Setup> make_setup(std::string_view name, const Grid& grid, std::uint64_t seed) {
  if (name == kSetupNames[0]) return kelvin_helmholtz(grid, seed);
  if (name == kSetupNames[1]) return sedov(grid);
  return Status(StatusCode::invalid_argument, "unknown set-up");
}

}  // namespace quern::flow

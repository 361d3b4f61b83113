// What is simulated: the gas, its boundary and its state at time 0. Everything is in dimensionless code units.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "datasets/flow/boundary.h"
#include "datasets/flow/grid.h"

namespace quern::flow {

/// `initial` gets the centre of a cell (z, y, x) measured from the middle of the domain.
struct Setup {
  std::string_view name;
  double gamma = 1.4;
  BoundaryKind boundary = BoundaryKind::periodic;
  std::function<Primitive(const std::array<double, kAxes>&)> initial;
};

/// Two counter-flowing shear layers, normal to y, that roll up along x and break up in three dimensions. The flow
/// starts from eight fixed modes along x and z whose phases come from `seed`. Periodic, gamma 5/3.
Setup kelvin_helmholtz(const Grid& grid, std::uint64_t seed);

/// A blast wave from a point in the middle of a cold gas at rest: a sphere (a disc, when an axis has one cell), with
/// nothing in front of the shock. Outflow, gamma 1.4.
Setup sedov(const Grid& grid);

/// Names make_setup knows.
std::span<const std::string_view> setup_names();
/// Fails on a name that setup_names() does not hold.
Result<Setup> make_setup(std::string_view name, const Grid& grid, std::uint64_t seed);

}  // namespace quern::flow

// The regular grid a flow solver works on, and the ghosted primitive state that lies on it.
// Axes are z, y, x everywhere, slowest first; x is contiguous. Cells are cubes.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <quern/status.h>

namespace quern::flow {

inline constexpr std::size_t kAxes = 3;
/// Layers of ghost cells on either side of an axis: what a second-order reconstruction reaches.
inline constexpr std::size_t kGhostLayers = 2;

/// A box of cells, which may be a part of a larger domain (one rank's share of it).
struct Grid {
  std::array<std::size_t, kAxes> cells{1, 1, 1};   ///< of this box
  std::array<std::size_t, kAxes> global{1, 1, 1};  ///< of the whole domain
  std::array<std::size_t, kAxes> origin{0, 0, 0};  ///< where this box begins in the domain
  double spacing = 1.0;                            ///< edge of a cell; the longest axis of the domain has length 1

  /// A grid that is the whole domain. Fails on an extent of 0 and when the arrays of a solver would not be addressable.
  static Result<Grid> make(const std::array<std::size_t, kAxes>& cells);
  /// The box of `cells` that begins at `origin` in this domain. Fails when it leaves the domain.
  Result<Grid> part(const std::array<std::size_t, kAxes>& origin, const std::array<std::size_t, kAxes>& cells) const;

  /// Nothing flows along an axis of one cell: it has no ghosts and no fluxes.
  bool active(std::size_t axis) const { return global[axis] > 1; }
  std::size_t ghosts(std::size_t axis) const { return active(axis) ? kGhostLayers : 0; }
  std::size_t padded(std::size_t axis) const { return cells[axis] + 2 * ghosts(axis); }
  std::size_t elems() const { return cells[0] * cells[1] * cells[2]; }
  std::size_t padded_elems() const { return padded(0) * padded(1) * padded(2); }
  /// Distance in elements between neighbours along an axis of a padded array.
  std::size_t padded_stride(std::size_t axis) const {
    return axis == 2 ? 1 : (axis == 1 ? padded(2) : padded(1) * padded(2));
  }
  /// Index of the cell (z, y, x) in an array without and with ghosts.
  std::size_t index(std::size_t z, std::size_t y, std::size_t x) const { return (z * cells[1] + y) * cells[2] + x; }
  std::size_t padded_index(std::size_t z, std::size_t y, std::size_t x) const {
    return ((z + ghosts(0)) * padded(1) + y + ghosts(1)) * padded(2) + x + ghosts(2);
  }
  double length(std::size_t axis) const { return spacing * static_cast<double>(global[axis]); }
  /// Centre of a cell of this box, in the domain's coordinates, measured from the middle of the domain. Mirror cells
  /// have centres that differ in sign alone, so a symmetric set-up is symmetric to the last bit.
  double centre(std::size_t axis, std::size_t index) const {
    const double doubled = 2.0 * static_cast<double>(origin[axis] + index) + 1.0 - static_cast<double>(global[axis]);
    return 0.5 * spacing * doubled;
  }
};

/// Density, velocity (z, y, x) and pressure of one cell.
struct Primitive {
  double density = 1.0;
  std::array<double, kAxes> velocity{};
  double pressure = 1.0;
};

/// Components of a state in storage: primitive (density, velocity, pressure) or conserved (density, momentum, energy).
inline constexpr std::size_t kComponents = 5;
inline constexpr std::size_t kDensity = 0;
inline constexpr std::size_t kFirstVector = 1;  ///< velocity or momentum along axis a is component kFirstVector + a
inline constexpr std::size_t kPressure = 4;
inline constexpr std::size_t kEnergy = 4;

/// One array for each component.
using Components = std::array<std::vector<double>, kComponents>;

}  // namespace quern::flow

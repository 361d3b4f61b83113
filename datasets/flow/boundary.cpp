// Ghost cells of a box that is the whole domain: copies of inner planes, chosen by an index map.
#include "datasets/flow/boundary.h"

#include <algorithm>
#include <cstddef>

namespace quern::flow {
namespace {

/// Copies the plane `source` of one axis to the plane `target` (both padded indices), inner cells of the other axes
/// only.
void copy_plane(const Grid& grid, std::vector<double>& values, std::size_t axis, std::size_t source,
                std::size_t target) {
  const std::size_t outer = axis == 0 ? 1 : 0;
  const std::size_t inner = axis == 2 ? 1 : 2;
  const std::size_t stride = grid.padded_stride(axis);
  for (std::size_t i = 0; i < grid.cells[outer]; ++i) {
    const std::size_t row =
        (i + grid.ghosts(outer)) * grid.padded_stride(outer) + grid.ghosts(inner) * grid.padded_stride(inner);
    for (std::size_t j = 0; j < grid.cells[inner]; ++j) {
      const std::size_t at = row + j * grid.padded_stride(inner);
      values[at + target * stride] = values[at + source * stride];
    }
  }
}

/// `inner_of(position, n)` names the inner cell that the cell at `position` (negative or >= n outside) repeats.
template <class Map>
void fill_with(const Grid& grid, Components& primitive, Map inner_of) {
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (!grid.active(axis)) continue;
    const auto n = static_cast<std::ptrdiff_t>(grid.cells[axis]);
    const auto ghosts = static_cast<std::ptrdiff_t>(grid.ghosts(axis));
    for (std::ptrdiff_t layer = 1; layer <= ghosts; ++layer) {
      for (const std::ptrdiff_t position : {-layer, n - 1 + layer}) {
        const auto source = static_cast<std::size_t>(inner_of(position, n) + ghosts);
        const auto target = static_cast<std::size_t>(position + ghosts);
        for (auto& component : primitive) copy_plane(grid, component, axis, source, target);
      }
    }
  }
}

}  // namespace

void PeriodicBoundary::fill(const Grid& grid, Components& primitive) {
  // 2n is added because a ghost may lie up to kGhostLayers = 2 cells before an axis of two cells.
  fill_with(grid, primitive, [](std::ptrdiff_t position, std::ptrdiff_t n) { return (position + 2 * n) % n; });
}

void OutflowBoundary::fill(const Grid& grid, Components& primitive) {
  fill_with(grid, primitive,
            [](std::ptrdiff_t position, std::ptrdiff_t n) { return std::clamp<std::ptrdiff_t>(position, 0, n - 1); });
}

std::unique_ptr<GhostFiller> make_boundary(BoundaryKind kind) {
  if (kind == BoundaryKind::periodic) return std::make_unique<PeriodicBoundary>();
  return std::make_unique<OutflowBoundary>();
}

}  // namespace quern::flow

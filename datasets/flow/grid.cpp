// Construction of grids: the checks that make every later index computation safe.
#include "datasets/flow/grid.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace quern::flow {

Result<Grid> Grid::make(const std::array<std::size_t, kAxes>& cells) {
  // One component may take a 64th of the address space; a solver holds twenty.
  constexpr std::uint64_t kMostElems = std::numeric_limits<std::int64_t>::max() / (64 * sizeof(double));
  std::uint64_t padded = 1;
  for (const std::size_t n : cells) {
    if (n == 0) return Status(StatusCode::invalid_shape, "every axis of the grid needs at least one cell");
    std::uint64_t next = 0;
    if (n > kMostElems || __builtin_mul_overflow(padded, n + 2 * kGhostLayers, &next) || next > kMostElems)
      return Status(StatusCode::invalid_shape, "the grid has more cells than can be addressed");
    padded = next;
  }
  Grid grid;
  grid.cells = cells;
  grid.global = cells;
  grid.spacing = 1.0 / static_cast<double>(*std::max_element(cells.begin(), cells.end()));
  return grid;
}

Result<Grid> Grid::part(const std::array<std::size_t, kAxes>& begin,
                        const std::array<std::size_t, kAxes>& count) const {
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (count[axis] == 0 || count[axis] > global[axis] || begin[axis] > global[axis] - count[axis])
      return Status(StatusCode::invalid_shape, "part of the grid: axis {0} leaves the domain",
                    static_cast<std::int64_t>(axis));
  }
  Grid grid = *this;
  grid.cells = count;
  grid.origin = begin;
  return grid;
}

}  // namespace quern::flow

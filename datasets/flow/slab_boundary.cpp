// The exchange along z. The other axes are whole on every rank and filled as ever.
#include "datasets/flow/slab_boundary.h"

#include <algorithm>

namespace quern::flow {

int slabs(std::size_t planes, int ranks) {
  return static_cast<int>(std::clamp<std::size_t>(planes / kGhostLayers, 1, static_cast<std::size_t>(ranks)));
}

Result<Grid> slab(const Grid& domain, int index, int count) {
  const std::size_t planes = domain.global[0];
  const auto begin_of = [&](int i) {
    const auto n = static_cast<std::size_t>(count), at = static_cast<std::size_t>(i);
    return planes / n * at + std::min(at, planes % n);
  };
  const std::size_t begin = begin_of(index);
  return domain.part({begin, 0, 0}, {begin_of(index + 1) - begin, domain.global[1], domain.global[2]});
}

SlabBoundary::SlabBoundary(BoundaryKind kind, MPI_Comm ranks) : local_(make_boundary(kind)), ranks_(ranks) {
  int rank = 0, count = 1;
  MPI_Comm_rank(ranks_, &rank);
  MPI_Comm_size(ranks_, &count);
  const bool round = kind == BoundaryKind::periodic && count > 1;
  if (rank > 0 || round) below_ = (rank + count - 1) % count;
  if (rank + 1 < count || round) above_ = (rank + 1) % count;
}

void SlabBoundary::fill(const Grid& grid, Components& primitive) {
  // As if the slab were the domain; where there is a neighbour, its cells then take the place of the ghosts along z.
  local_->fill(grid, primitive);
  if (below_ == MPI_PROC_NULL && above_ == MPI_PROC_NULL) return;
  // Counted in rows, so that no count comes near the end of int.
  MPI_Datatype row = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(grid.padded(2)), MPI_DOUBLE, &row);
  MPI_Type_commit(&row);
  const auto rows = static_cast<int>(kGhostLayers * grid.padded(1));
  const std::size_t plane = grid.padded_stride(0);
  const std::size_t cells = grid.cells[0];
  for (std::size_t c = 0; c < kComponents; ++c) {
    double* lower_ghosts = primitive[c].data();
    double* lower_cells = lower_ghosts + kGhostLayers * plane;
    double* upper_cells = lower_ghosts + cells * plane;
    double* upper_ghosts = upper_cells + kGhostLayers * plane;
    const int up = static_cast<int>(2 * c), down = up + 1;
    MPI_Sendrecv(upper_cells, rows, row, above_, up, lower_ghosts, rows, row, below_, up, ranks_, MPI_STATUS_IGNORE);
    MPI_Sendrecv(lower_cells, rows, row, below_, down, upper_ghosts, rows, row, above_, down, ranks_,
                 MPI_STATUS_IGNORE);
  }
  MPI_Type_free(&row);
}

bool SlabBoundary::agree(bool good) {
  int all = good ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, ranks_);
  return all != 0;
}

}  // namespace quern::flow

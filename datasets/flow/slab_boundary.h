// Ghost cells of a slab, one rank's share of a domain that is cut along z: layers are exchanged with the two neighbours
// over MPI. The state of every cell is the same to the last bit for any number of ranks.
#pragma once

#include <mpi.h>

#include <memory>

#include "datasets/flow/boundary.h"

namespace quern::flow {

/// How many slabs a domain of `planes` planes can have among `ranks` ranks: each needs as many planes as it lends to a
/// neighbour. Ranks from this number on have no cells.
int slabs(std::size_t planes, int ranks);

/// The slab with this index among `count` of the whole domain; their sizes differ by one plane at most.
Result<Grid> slab(const Grid& domain, int index, int count);

class SlabBoundary final : public GhostFiller {
 public:
  /// `ranks` holds one rank for each slab, in order; it must outlive this. Every call on this object is collective.
  SlabBoundary(BoundaryKind kind, MPI_Comm ranks);
  void fill(const Grid& grid, Components& primitive) override;
  bool agree(bool good) override;

 private:
  std::unique_ptr<GhostFiller> local_;
  MPI_Comm ranks_;
  int below_ = MPI_PROC_NULL;
  int above_ = MPI_PROC_NULL;
};

}  // namespace quern::flow

// What lies outside the box a solver holds: the ghost cells. The two fillers here serve a box that is the whole domain;
// a run over several ranks has one that exchanges layers with its neighbours (slab_boundary.h).
#pragma once

#include <memory>

#include "datasets/flow/grid.h"

namespace quern::flow {

/// Fills the ghost layers of every active axis of a padded primitive state from its inner cells.
class GhostFiller {
 public:
  virtual ~GhostFiller() = default;
  /// Called twice for each step, and once more when a step is taken back; in the same order on every rank. Edges and
  /// corners between axes are never read.
  virtual void fill(const Grid& grid, Components& primitive) = 0;
  /// True when `good` is true for every box of the domain: a step is kept on all ranks or on none. Called once for each
  /// step.
  virtual bool agree(bool good) { return good; }
};

/// The domain goes round.
class PeriodicBoundary final : public GhostFiller {
 public:
  void fill(const Grid& grid, Components& primitive) override;
};

/// What reaches the edge leaves: ghosts repeat the outermost cell.
class OutflowBoundary final : public GhostFiller {
 public:
  void fill(const Grid& grid, Components& primitive) override;
};

enum class BoundaryKind { periodic, outflow };

std::unique_ptr<GhostFiller> make_boundary(BoundaryKind kind);

}  // namespace quern::flow

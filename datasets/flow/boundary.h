// What lies outside the box a solver holds: the ghost cells. A run over several ranks brings its own GhostFiller that
// exchanges layers with its neighbours; the two here serve a box that is the whole domain.
#pragma once

#include <memory>

#include "datasets/flow/grid.h"

namespace quern::flow {

/// Fills the ghost layers of every active axis of a padded primitive state from its inner cells.
class GhostFiller {
 public:
  virtual ~GhostFiller() = default;
  /// Called twice for each step, in the same order on every rank. Edges and corners between axes are never read.
  virtual void fill(const Grid& grid, Components& primitive) = 0;
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

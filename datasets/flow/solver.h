// A finite-volume solver for the Euler equations of an ideal gas: MUSCL reconstruction of primitive variables, HLLC
// fluxes, all axes at once, two-stage strong-stability-preserving Runge-Kutta in time. Knows nothing of files or
// arguments.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "datasets/flow/boundary.h"
#include "datasets/flow/grid.h"
#include "datasets/flow/setup.h"

namespace quern::flow {

/// Fields a solver can hand out. Energy is internal plus kinetic, per volume.
enum class Quantity { density, velocity_x, velocity_y, velocity_z, pressure, energy };

struct QuantityInfo {
  Quantity quantity;
  std::string_view name;       ///< as in file names
  std::string_view long_name;  ///< a phrase
};

/// All of them, in the order they are written.
std::span<const QuantityInfo> quantities();

/// True when this build can use more than one thread.
bool has_threads();

/// Holds 20 doubles for each cell. The result of every call is the same to the last bit for any number of threads.
class Solver {
 public:
  /// The state at time 0. `boundary` must outlive the solver; `threads` = 0 takes all the machine has.
  /// Fails with out_of_memory, or invalid_argument when the set-up gives a cell without positive density and pressure.
  static Result<Solver> make(const Grid& grid, const Setup& setup, GhostFiller& boundary, int threads);

  const Grid& grid() const { return grid_; }
  double gamma() const { return gamma_; }
  double time() const { return time_; }
  std::uint64_t step() const { return step_; }
  int threads() const { return threads_; }

  /// The longest step that is stable for this box at a Courant number: cfl * h / max(sum over axes of |v| + c).
  /// Infinite when no axis is active. A run over several ranks takes the smallest of theirs.
  double stable_time_step(double cfl) const;

  /// One step. When density or pressure would not stay positive, here or in another box of the domain, the state is
  /// left as it was and invalid_argument comes back: try a shorter step. Needs time proportional to the cells.
  Status advance(double dt);

  /// Copies one field of the inner cells, C order. `out` has grid().elems() elements.
  void field(Quantity quantity, std::span<double> out) const;

  /// Sums of density, momentum (z, y, x) and energy over the inner cells, in a fixed order; multiply by the cell
  /// volume.
  std::array<double, kComponents> totals() const;

 private:
  Solver(const Grid& grid, double gamma, GhostFiller& boundary, int threads);
  Status set_initial(const Setup& setup);
  void compute_rate();
  void rate_of_plane(std::size_t z, double* scratch);
  void rate_between_planes(std::size_t y, double* scratch);
  void flux_row(std::size_t axis, std::size_t first, std::size_t faces, double* flux) const;
  void combine(double weight_previous, double weight_current, const Components& current, double dt);
  bool update_primitive();

  Grid grid_;
  double gamma_;
  GhostFiller* boundary_;
  int threads_;
  double time_ = 0.0;
  std::uint64_t step_ = 0;
  Components primitive_;  ///< padded; always belongs to conserved_, ghosts filled
  Components conserved_;
  Components previous_;  ///< conserved state at the beginning of the step
  Components rate_;      ///< time derivative of the conserved state
  std::vector<double> scratch_;
  std::size_t scratch_of_thread_ = 0;
};

}  // namespace quern::flow

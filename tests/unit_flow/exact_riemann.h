// The exact solution of the Riemann problem of an ideal gas in one dimension (Toro, "Riemann Solvers and Numerical
// Methods for Fluid Dynamics", chapter 4): what the solver is measured against. No vacuum.
#pragma once

namespace quern::flow::test {

struct GasState {
  double density;
  double velocity;
  double pressure;
};

/// The state at `speed` = position / time, for a jump from `left` to `right` at position 0.
GasState exact_riemann(const GasState& left, const GasState& right, double gamma, double speed);

}  // namespace quern::flow::test

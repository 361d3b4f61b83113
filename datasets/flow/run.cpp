// The loop over time.
#include "datasets/flow/run.h"

#include <algorithm>
#include <cmath>

namespace quern::flow {
namespace {

/// One step, shortened as often as the solver refuses it.
Status step_forward(Solver& solver, double dt, std::string& detail) {
  constexpr int kAttempts = 10;
  Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt, dt *= 0.5) {
    status = solver.advance(dt);
    if (status.ok()) return status;
  }
  detail = "the simulation broke down after step " + std::to_string(solver.step()) + " at time " +
           std::to_string(solver.time()) + ": density or pressure would not stay positive; try a smaller --cfl";
  return status;
}

}  // namespace

Status run(Solver& solver, const RunOptions& options, const OutputOptions& output, const StepObserver& observer,
           Written& written, std::string& detail) {
  if (options.initial) QUERN_RETURN_IF_ERROR(write_fields(solver, output, written, detail));
  bool done = options.steps == 0;
  while (!done) {
    double dt = solver.stable_time_step(options.cfl);
    if (!std::isfinite(dt) && !std::isfinite(options.time)) {
      detail = "nothing can flow in a single cell; give a larger --size";
      return Status(StatusCode::invalid_shape, "no active axis and no end time");
    }
    const double left = options.time - solver.time();
    const bool last = dt >= left;
    dt = std::min(dt, left);
    const double before = solver.time();
    QUERN_RETURN_IF_ERROR(step_forward(solver, dt, detail));
    const bool whole_step = solver.time() == before + dt;
    done = (last && whole_step) || solver.step() >= options.steps;
    if (!observer(solver)) return Status(StatusCode::cancelled, "interrupted");
    const bool due = options.every > 0 && solver.step() % options.every == 0;
    if (done || due) QUERN_RETURN_IF_ERROR(write_fields(solver, output, written, detail));
  }
  return {};
}

}  // namespace quern::flow

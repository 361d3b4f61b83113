// Drives a solver to its end and writes fields on the way. Prints nothing: a caller that wants progress gives a
// function.
#pragma once

#include <functional>
#include <limits>
#include <string>

#include "datasets/flow/output.h"
#include "datasets/flow/solver.h"

namespace quern::flow {

struct RunOptions {
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
  double time = std::numeric_limits<double>::infinity();
  std::uint64_t every = 0;  ///< write each so many steps; the last step is always written
  bool initial = false;     ///< write the state at time 0, too
  double cfl = 0.4;
};

/// Called after each step; false asks to stop, which ends the run with `cancelled` before anything more is written.
using StepObserver = std::function<bool(const Solver&)>;

/// Runs until `steps` or `time`, whichever comes first; the last step is shortened to end at `time`. A step the solver
/// refuses is tried again at half its length, ten times at most. `detail` receives a sentence when this fails.
Status run(Solver& solver, const RunOptions& options, const OutputOptions& output, const StepObserver& observer,
           Written& written, std::string& detail);

}  // namespace quern::flow

// Runs as rows of numbers: inputs, targets, and which rows train.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <quern/dtype.h>

#include "surrogate/inputs.h"
#include "surrogate/model.h"
#include "surrogate/runs.h"

namespace quern::surrogate {

/// What a row is for: later steps of a series test. Of the earlier ones, all of each fifth series and the last of the
/// others set the intervals, which stand for arrays of both kinds: unlike all, and later ones.
enum class Part { train, intervals, test };

struct Row {
  Run run;
  std::string family;  ///< the application: the name up to its first '-'
  std::string series;  ///< the name up to its step
  long step = 0;
  DType dtype = DType::f32;
  Part part = Part::train;
  std::vector<double> inputs;  ///< of its network: those of the run, and deep features where they are used
  std::array<double, kTargets> targets{};
  std::array<bool, kTargets> known{};
};

struct RunsTable {
  std::vector<Row> rows;
  std::size_t failed = 0;  ///< runs that their codec did not finish
  std::size_t unread = 0;  ///< lines that are no runs
};

/// Reads a CSV file of `quern bench --sweep`. On failure `problem` says what is wrong in one line.
bool read_runs(const std::string& path, RunsTable& table, std::string& problem);

}  // namespace quern::surrogate

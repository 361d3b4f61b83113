// Moments that are coded at every step of a training run, as offloaded state is.
#pragma once

#include "tests/quality/resume.h"

namespace quern::testing {

struct AtRestRow {
  std::string name;
  double first_mean = 0;  ///< differences to the run in binary32, nats
  double late_mean = 0;
  double exceptional_share = 0;  ///< of blocks, at the end
};

inline constexpr double kAtRestLimit = 2e-3;  ///< of |late_mean|, for codes of 8 bits

/// 250 steps with each coder at every step, at the scheduled rate or at that of the end of training.
std::vector<AtRestRow> measure_at_rest(double beta2, bool end_rate);

}  // namespace quern::testing

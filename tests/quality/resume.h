// What coding the state of a training run does to the run: resumes from decoded states against the lossless one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/quality/language_model.h"
#include "tests/unit_moments/presets.h"

namespace quern::testing {

inline constexpr double kEndOfTrainingRate = 3e-5;

/// Codes a state and puts what comes back in its place.
using StateCoder = std::function<void(TrainState&)>;

StateCoder preset_coder(const Preset& preset);
/// Weights multiplied by 1 +- 1e-7: what any rounding might do.
StateCoder perturbed_coder(std::uint32_t seed);
/// Negative control: second moments by a linear quantizer, the bound in standard deviations.
StateCoder linear_second_moment_coder(double deviations);
/// Moments alone.
StateCoder moments_coder(double eps, double log_bound);

struct ResumeResult {
  double first_evaluation = 0;
  double first_mean = 0;  ///< training loss of the first 50 steps
  double late_mean = 0;   ///< of the last 100
  std::vector<double> losses;
};

/// Restores `start` through `coder`, then trains `steps` steps; every `period` steps (0: never again) the state goes
/// through the coder again.
ResumeResult resume(Trainer& trainer, const TrainState& start, const StateCoder& coder, std::size_t steps,
                    std::size_t period = 0);

enum class Expectation { within, beyond, unknown };

struct QualityRow {
  std::string name;
  std::string group;  ///< which run it is compared in
  Expectation expected = Expectation::within;
  double first_evaluation = 0;  ///< differences to the lossless resume, nats
  double first_mean = 0;
  double late_mean = 0;
  double limit = 0;        ///< of |late_mean|
  double first_limit = 0;  ///< of |first_evaluation|; 0: none

  bool within() const;
};

struct QualityTable {
  std::vector<QualityRow> rows;
  double late_loss = 0;      ///< of the lossless resume at the scheduled rate
  double late_loss_low = 0;  ///< and at the rate of the end of training
  std::size_t frozen_rows = 0;
};

/// All experiments, with this beta2.
QualityTable measure_quality(double beta2);

/// The state after the steps that all experiments begin with.
TrainState trained_state(Trainer& trainer);
Trainer make_trainer(double beta2);

}  // namespace quern::testing

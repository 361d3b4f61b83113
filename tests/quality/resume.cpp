// Experiments on a training run.
#include "tests/quality/resume.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace quern::testing {
namespace {

constexpr std::uint64_t kTrainedSteps = 600;
constexpr std::size_t kResumedSteps = 250;
constexpr std::size_t kFirst = 50;
constexpr std::size_t kLate = 100;
constexpr double kEndRate = kEndOfTrainingRate;

Bytes bytes_of(const std::vector<float>& values) {
  Bytes bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
void put_back(const Bytes& bytes, std::vector<float>& values) {
  std::memcpy(values.data(), bytes.data(), bytes.size());
}

double mean(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += values[i];
  return sum / static_cast<double>(end - begin);
}

}  // namespace

StateCoder preset_coder(const Preset& preset) {
  return [preset](TrainState& state) {
    for (TrainTensor& t : state.tensors) {
      Parameter parameter{{codec::tensor::ElementType::f32, Shape::make(t.shape).value()},
                          bytes_of(t.weight),
                          bytes_of(t.exp_avg),
                          bytes_of(t.exp_avg_sq)};
      Parameter decoded;
      code_parameter(preset, parameter, nullptr, decoded);
      put_back(decoded.weight, t.weight);
      put_back(decoded.exp_avg, t.exp_avg);
      put_back(decoded.exp_avg_sq, t.exp_avg_sq);
    }
  };
}

StateCoder moments_coder(double eps, double log_bound) { return preset_coder({"moments", 0, eps, log_bound}); }

StateCoder perturbed_coder(std::uint32_t seed) {
  return [seed](TrainState& state) {
    std::mt19937 random(seed);
    for (TrainTensor& t : state.tensors)
      for (float& w : t.weight) w *= random() % 2 == 0 ? 1 + 1.2e-7f : 1 - 1.2e-7f;
  };
}

StateCoder linear_second_moment_coder(double deviations) {
  return [deviations](TrainState& state) {
    for (TrainTensor& t : state.tensors) {
      double sum = 0;
      double squares = 0;
      for (const float v : t.exp_avg_sq) sum += static_cast<double>(v);
      const double center = sum / static_cast<double>(t.exp_avg_sq.size());
      for (const float v : t.exp_avg_sq) squares += std::pow(static_cast<double>(v) - center, 2);
      const double step = 2 * deviations * std::sqrt(squares / static_cast<double>(t.exp_avg_sq.size()));
      for (float& v : t.exp_avg_sq) v = static_cast<float>(step * std::round(static_cast<double>(v) / step));
    }
  };
}

ResumeResult resume(Trainer& trainer, const TrainState& start, const StateCoder& coder, std::size_t steps,
                    std::size_t period) {
  TrainState state = start;
  if (coder) coder(state);
  ResumeResult result;
  result.first_evaluation = trainer.evaluate(state);
  for (std::size_t i = 0; i < steps; ++i) {
    if (coder && period != 0 && i > 0 && i % period == 0) coder(state);
    result.losses.push_back(trainer.step(state));
  }
  result.first_mean = mean(result.losses, 0, std::min(kFirst, steps));
  result.late_mean = mean(result.losses, steps - std::min(kLate, steps), steps);
  return result;
}

bool QualityRow::within() const {
  return std::abs(late_mean) <= limit && (first_limit == 0 || std::abs(first_evaluation) <= first_limit);
}

Trainer make_trainer(double beta2) {
  TrainOptions options;
  options.beta2 = beta2;
  return {made_up_text(200000, 5), options};
}

TrainState trained_state(Trainer& trainer) {
  TrainState state = Trainer::fresh(1);
  for (std::uint64_t i = 0; i < kTrainedSteps; ++i) trainer.step(state);
  return state;
}

QualityTable measure_quality(double beta2) {
  constexpr std::size_t kPeriod = 20;
  Trainer trainer = make_trainer(beta2);
  const TrainState start = trained_state(trainer);
  QualityTable table;
  for (std::size_t r = 0; r < Trainer::kBytes; ++r) {
    const auto row = start.tensors[kEmbedding].exp_avg_sq.begin() + static_cast<std::ptrdiff_t>(r * Trainer::kEmbed);
    if (std::all_of(row, row + Trainer::kEmbed, [](float v) { return v == 0; })) ++table.frozen_rows;
  }
  const auto group = [&](const std::string& name, auto&& experiments) {
    const ResumeResult lossless = resume(trainer, start, {}, kResumedSteps);
    double spread = 0;
    const std::size_t first_row = table.rows.size();
    const auto add = [&](const std::string& what, const StateCoder& coder, std::size_t period, double first_limit,
                         Expectation expected = Expectation::within) {
      const ResumeResult r = resume(trainer, start, coder, kResumedSteps, period);
      table.rows.push_back({what, name, expected, r.first_evaluation - lossless.first_evaluation,
                            r.first_mean - lossless.first_mean, r.late_mean - lossless.late_mean, 0, first_limit});
      return std::abs(table.rows.back().late_mean);
    };
    for (std::uint32_t seed = 1; seed <= 3; ++seed)
      spread = std::max(spread, add("perturbed by 1e-7, seed " + std::to_string(seed), perturbed_coder(seed), 0, 0));
    add("moments", preset_coder(kMomentsPreset), 0, 5e-4);
    add("balanced", preset_coder(kBalanced), 0, 5e-4);
    add("archive", preset_coder(kArchive), 0, 3e-3);
    experiments(add);
    for (std::size_t i = first_row; i < table.rows.size(); ++i) table.rows[i].limit = std::max(3 * spread, 1e-3);
    return lossless.late_mean;
  };
  table.late_loss = group("scheduled rate", [](const auto& add) {
    add("balanced, 12 restarts", preset_coder(kBalanced), kPeriod, 5e-4);
    add("control: v linear, 1e-2 deviations", linear_second_moment_coder(1e-2), 0, 0, Expectation::beyond);
    add("control: .2/.1 rounded to nearest at each step", moments_coder(.2, .1), 1, 0, Expectation::beyond);
  });
  trainer.options().schedule.constant = kEndRate;
  table.late_loss_low = group("rate 3e-5", [](const auto& add) {
    // Restarts so close to each other undo what steps of this rate did to the weights: how much depends on the run.
    add("balanced, 12 restarts", preset_coder(kBalanced), kPeriod, 5e-4, Expectation::unknown);
    // The way out: a bound on weights in units of the rate.
    Preset in_rates = kBalanced;
    in_rates.weight_bound = 0.1 * kEndRate * kPeriod;
    add("weights .1 rate * steps, 12 restarts", preset_coder(in_rates), kPeriod, 5e-4);
  });
  return table;
}

}  // namespace quern::testing

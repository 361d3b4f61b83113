// A made-up training: parameters in regions, and gradients that depend on the step alone.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "offload/optimizer.h"

namespace quern::testing {

/// What an optimizer holds, read back.
struct OffloadState {
  std::uint64_t step = 0;
  std::vector<float> weights, first, second;

  bool operator==(const OffloadState& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
    };
    return step == other.step && same(weights, other.weights) && same(first, other.first) && same(second, other.second);
  }
};

class SmallTraining {
 public:
  explicit SmallTraining(std::vector<std::uint64_t> regions = {40000, 0, 100, 17000}) : regions_(std::move(regions)) {
    for (const std::uint64_t values : regions_) {
      begins_.push_back(total_);
      total_ += values;
    }
    copy.resize(total_);
    weights.resize(total_);
  }

  std::uint64_t total() const { return total_; }
  offload::OptimizerOptions options() const {
    offload::OptimizerOptions options;
    options.region_values.assign(regions_.begin(), regions_.end());
    options.subgroup_values = 16384;
    options.seed = 7;
    return options;
  }

  /// Weights of a bell curve; moments of zero.
  Status load(offload::Optimizer& optimizer, storage::Report& report) const {
    const auto source = [&](const offload::RegionPart& part) {
      for (std::uint64_t i = 0; i < part.count; ++i)
        part.weights[i] = value_of(begins_[part.region] + part.begin + i, 0);
      return Status();
    };
    return optimizer.load(0, source, report);
  }

  std::vector<float> gradient(std::uint64_t step) const {
    std::vector<float> g(total_);
    for (std::uint64_t i = 0; i < total_; ++i) g[i] = 1e-3f * value_of(i, step) + 2e-4f * value_of(i, 1000);
    return g;
  }

  /// Takes the step after the last; each region has settings of its own, every other one gradients in bfloat16.
  Result<offload::StepOutcome> step(offload::Optimizer& optimizer, storage::Report& report,
                                    const offload::StepOptions& how = {}, float factor = 1) {
    std::vector<float> wide = gradient(optimizer.step_count() + 1);
    std::vector<std::uint16_t> narrow(total_);
    for (std::uint64_t i = 0; i < total_; ++i) {
      wide[i] *= factor;
      narrow[i] = static_cast<std::uint16_t>(kernels::float_to_bfloat(wide[i]));
    }
    std::vector<offload::RegionStep> steps(regions_.size());
    for (std::size_t r = 0; r < regions_.size(); ++r) {
      steps[r].settings.rate = 1e-3 * static_cast<double>(r + 1);
      steps[r].settings.decay = r % 2 == 0 ? 0.1 : 0;
      if (r % 2 == 0)
        steps[r].gradient = {wide.data() + begins_[r], codec::tensor::ElementType::f32};
      else
        steps[r].gradient = {narrow.data() + begins_[r], codec::tensor::ElementType::bf16};
      steps[r].copy = copy.data() + begins_[r];
      steps[r].weights = weights.data() + begins_[r];
    }
    return optimizer.step(steps, how, report);
  }

  Result<OffloadState> read(offload::Optimizer& optimizer, storage::Report& report) const {
    OffloadState state;
    state.step = optimizer.step_count();
    for (std::vector<float>* const part : {&state.weights, &state.first, &state.second}) part->resize(total_);
    for (std::size_t r = 0; r < regions_.size(); ++r)
      QUERN_RETURN_IF_ERROR(optimizer.read({r, 0, regions_[r], state.weights.data() + begins_[r],
                                            state.first.data() + begins_[r], state.second.data() + begins_[r]},
                                           report));
    return state;
  }

  std::vector<std::uint16_t> copy;  ///< what the last step gave
  std::vector<float> weights;

 private:
  static float value_of(std::uint64_t i, std::uint64_t step) {
    const std::uint64_t bits = kernels::at_rest_mix64(i * 4096 + step);
    float sum = 0;
    for (int k = 0; k < 4; ++k) sum += static_cast<float>(bits >> (16 * k) & 0xffff) * 0x1p-16f - 0.5f;
    return sum * (1 + static_cast<float>(i % 17));
  }

  std::vector<std::uint64_t> regions_;
  std::vector<std::uint64_t> begins_;
  std::uint64_t total_ = 0;
};

}  // namespace quern::testing

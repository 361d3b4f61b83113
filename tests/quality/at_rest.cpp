// Coders of every step, and what they do to a run.
#include "tests/quality/at_rest.h"

#include <cstdlib>
#include <memory>

#include "codecs/tensor/at_rest.h"

namespace quern::testing {
namespace {

using namespace codec::tensor;

std::span<std::uint8_t> bytes_of(std::vector<float>& values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * 4};
}

/// Blocks of the last state that a coder saw, and those that did not fit its codes.
struct BlockCounts {
  std::uint64_t all = 0;
  std::uint64_t exceptional = 0;
};

/// Moments through codes at rest; rounding by the state's own step.
StateCoder at_rest_coder(const kernels::AtRestForm& form, std::shared_ptr<BlockCounts> counts) {
  return [form, counts](TrainState& state) {
    SerialRunner runner;
    std::uint64_t at = 0;
    *counts = {};
    for (TrainTensor& t : state.tensors) {
      AtRestMoments moments = AtRestMoments::make(t.weight.size(), at, form).value();
      if (!moments.encode(1, state.step, t.exp_avg.data(), t.exp_avg_sq.data(), runner).ok() ||
          !moments.decode(t.exp_avg.data(), t.exp_avg_sq.data(), runner).ok())
        std::abort();
      const std::uint64_t blocks = (t.weight.size() + kernels::kAtRestBlock - 1) / kernels::kAtRestBlock;
      at += blocks * kernels::kAtRestBlock;
      counts->all += blocks;
      counts->exceptional += moments.exceptional_blocks();
    }
  };
}

/// Moments through the block maps of 4-bit optimizers.
StateCoder block_map_coder() {
  return [](TrainState& state) {
    SerialRunner runner;
    for (TrainTensor& t : state.tensors)
      for (std::vector<float>* const values : {&t.exp_avg, &t.exp_avg_sq}) {
        const TensorDescription description{ElementType::f32, Shape::make(t.shape).value()};
        TensorRequest request;
        request.mode = Mode::blk4;
        TensorInputs inputs;
        inputs.values = bytes_of(*values);
        const auto coded = encode_tensor(description, request, inputs, runner);
        if (!coded.ok() || !decode_tensor(description, coded.value(), {}, bytes_of(*values), runner).ok()) std::abort();
      }
  };
}

}  // namespace

std::vector<AtRestRow> measure_at_rest(double beta2, bool end_rate) {
  constexpr std::size_t kSteps = 250;
  Trainer trainer = make_trainer(beta2);
  const TrainState start = trained_state(trainer);
  if (end_rate) trainer.options().schedule.constant = kEndOfTrainingRate;
  const ResumeResult plain = resume(trainer, start, {}, kSteps);
  std::vector<AtRestRow> rows;
  const auto add = [&](const char* name, const StateCoder& coder, const BlockCounts* counts) {
    const ResumeResult r = resume(trainer, start, coder, kSteps, 1);
    const double share = counts == nullptr || counts->all == 0
                             ? 0
                             : static_cast<double>(counts->exceptional) / static_cast<double>(counts->all);
    rows.push_back({name, r.first_mean - plain.first_mean, r.late_mean - plain.late_mean, share});
  };
  const auto counts = std::make_shared<BlockCounts>();
  // The rounding must be unbiased: the last row rounds to nearest, with codes like those of 4 bits.
  add("8 bits", at_rest_coder({8, true}, counts), counts.get());
  add("8 bits, coarsest", at_rest_coder({8, false}, counts), counts.get());
  add("4 bits", at_rest_coder({4, true}, counts), counts.get());
  add("4-bit block maps", block_map_coder(), nullptr);
  add("control: .2/.1 rounded to nearest", moments_coder(.2, .1), nullptr);
  return rows;
}

}  // namespace quern::testing

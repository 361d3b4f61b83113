// Pinball losses of three quantiles on all rows at once; AdamW with a step that falls as a cosine.
#include "surrogate/train/network.h"

#include <algorithm>
#include <cmath>

#include <torch/torch.h>

#include "kernels/common/bits.h"
#include "surrogate/train/scales.h"

namespace quern::surrogate {
namespace {

constexpr float kMostHalf = 65504;  // the largest of binary16

constexpr int kOutputs = 3 * static_cast<int>(kTargets);

struct Network : torch::nn::Module {
  torch::nn::Linear first, second, gate;
  std::vector<torch::nn::Linear> last, direct;  ///< of each expert
  bool hidden;

  Network(int inputs, const TrainingOptions& options)
      : first(register_module("first", torch::nn::Linear(inputs, options.hidden))),
        second(register_module("second", torch::nn::Linear(options.hidden, options.hidden))),
        gate(nullptr),
        hidden(!options.without_hidden) {
    torch::NoGradGuard guard;
    for (std::size_t e = 0; e < options.experts; ++e) {
      const std::string number = e == 0 ? "" : std::to_string(e);
      last.push_back(register_module("last" + number, torch::nn::Linear(options.hidden, kOutputs)));
      direct.push_back(register_module("direct" + number, torch::nn::Linear(inputs, kOutputs)));
      last.back()->weight.mul_(0.3);
      direct.back()->weight.mul_(0.1);
      if (!hidden) {
        last.back()->weight.zero_();
        last.back()->bias.zero_();
      }
    }
    if (options.experts > 1)
      gate = register_module("gate", torch::nn::Linear(inputs, static_cast<std::int64_t>(options.experts)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto rectified = [](const torch::Tensor& h) { return torch::max(h, h * 0.125); };
    const torch::Tensor h = rectified(second->forward(rectified(first->forward(x))));
    const auto expert = [&](std::size_t e) {
      return hidden ? last[e]->forward(h) + direct[e]->forward(x) : direct[e]->forward(x);
    };
    if (last.size() == 1) return expert(0);
    const torch::Tensor shares = torch::softmax(gate->forward(x), 1);
    torch::Tensor out;
    for (std::size_t e = 0; e < last.size(); ++e) {
      const torch::Tensor part = shares.select(1, static_cast<std::int64_t>(e)).unsqueeze(1) * expert(e);
      out = e == 0 ? part : out + part;
    }
    return out;
  }
};

/// Rows as tensors, targets in units of the loss.
struct Batch {
  torch::Tensor inputs, targets, known;
};

Batch batch_of(const std::vector<const Row*>& rows, const CodecModel& model) {
  const auto n = static_cast<std::int64_t>(rows.size());
  Batch out{scaled_inputs(rows, {model.mean, model.scale}), torch::zeros({n, static_cast<std::int64_t>(kTargets)}),
            torch::zeros({n, static_cast<std::int64_t>(kTargets)})};
  auto y = out.targets.accessor<float, 2>();
  auto k = out.known.accessor<float, 2>();
  for (std::int64_t i = 0; i < n; ++i) {
    const Row& row = *rows[static_cast<std::size_t>(i)];
    for (std::size_t t = 0; t < kTargets; ++t) {
      y[i][static_cast<std::int64_t>(t)] = static_cast<float>(row.targets[t] / kUnits[t]);
      k[i][static_cast<std::int64_t>(t)] = row.known[t] ? 1.0F : 0.0F;
    }
  }
  return out;
}

torch::Tensor pinball(const torch::Tensor& error, double quantile) {
  return torch::max(error * quantile, error * (quantile - 1));
}

torch::Tensor loss_of(const torch::Tensor& out, const Batch& batch) {
  const auto parts = out.view({out.size(0), static_cast<std::int64_t>(kTargets), 3});
  const auto middle = parts.select(2, 0);
  const auto low = middle.detach() - parts.select(2, 1).abs();
  const auto high = middle.detach() + parts.select(2, 2).abs();
  const auto& y = batch.targets;
  const auto loss = pinball(y - middle, 0.5) * 2 + pinball(y - low, 0.1) + pinball(y - high, 0.9);
  return (loss * batch.known).sum() / batch.known.sum().clamp_min(1);
}

void set_scales(const std::vector<const Row*>& rows, bool without_levels, CodecModel& model) {
  const std::size_t deep = rows.front()->run.inputs.size();  // what follows is of patches
  const auto is_used = [&](std::size_t input) { return !without_levels || input >= deep || !is_of_levels(input); };
  const Scales scales = scales_of(rows, is_used);
  model.mean = scales.mean;
  model.scale = scales.scale;
}

enum class Outputs { none, targets };

/// Rows of targets get the size of their targets back, which the loss has in units.
Layer layer_of(const torch::nn::Linear& linear, Outputs outputs) {
  Layer layer;
  layer.rows = static_cast<std::uint32_t>(linear->weight.size(0));
  layer.columns = static_cast<std::uint32_t>(linear->weight.size(1));
  const auto weight = linear->weight.detach().contiguous();
  const auto bias = linear->bias.detach().contiguous();
  layer.weights.assign(weight.data_ptr<float>(), weight.data_ptr<float>() + weight.numel());
  layer.bias.assign(bias.data_ptr<float>(), bias.data_ptr<float>() + bias.numel());
  for (std::size_t r = 0; outputs == Outputs::targets && r < layer.rows; ++r) {
    const auto unit = static_cast<float>(kUnits[r / 3]);
    layer.bias[r] *= unit;
    for (std::size_t c = 0; c < layer.columns; ++c) layer.weights[r * layer.columns + c] *= unit;
  }
  // Models store binary16: what the intervals are widened for is what will be used.
  for (float& weight : layer.weights)
    weight = kernels::half_to_float(kernels::float_to_half(std::clamp(weight, -kMostHalf, kMostHalf)));
  return layer;
}

/// Conformal widening (Romano, Patterson, Candes 2019): the quantile of how far the truth lies outside.
void widen(const std::vector<const Row*>& rows, CodecModel& model) {
  for (std::size_t t = 0; t < kTargets; ++t) {
    std::vector<double> outside;
    for (const Row* row : rows) {
      if (!row->known[t]) continue;
      const Quantiles q = predict(model, row->inputs).targets[t];
      outside.push_back(std::max(q.low - row->targets[t], row->targets[t] - q.high));
    }
    if (outside.size() < 10) continue;
    std::sort(outside.begin(), outside.end());
    const auto at =
        std::min(outside.size() - 1, static_cast<std::size_t>(0.8 * static_cast<double>(outside.size() + 1)));
    model.widening[t] = static_cast<float>(outside[at]);
  }
}

void set_usual_distance(const std::vector<const Row*>& rows, CodecModel& model) {
  model.usual_distance = 1;
  std::vector<double> distances;
  for (const Row* row : rows) distances.push_back(predict(model, row->inputs).distance);
  std::sort(distances.begin(), distances.end());
  model.usual_distance = static_cast<float>(std::max(distances[distances.size() * 99 / 100], 0.1));
}

/// Scales and weights; the widening is left as it is.
void fit(const std::vector<const Row*>& rows, const TrainingOptions& options, CodecModel& model) {
  set_scales(rows, options.without_levels, model);
  torch::manual_seed(options.seed);
  Network network(static_cast<int>(model.mean.size()), options);
  const Batch batch = batch_of(rows, model);
  constexpr double kStep = 4e-3;
  torch::optim::AdamW optimizer(network.parameters(), torch::optim::AdamWOptions(kStep).weight_decay(0.05));
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    set_step(optimizer, kStep, epoch, options.epochs);
    optimizer.zero_grad();
    Batch noisy = batch;
    noisy.inputs = batch.inputs + 0.05 * torch::randn_like(batch.inputs);
    loss_of(network.forward(noisy.inputs), noisy).backward();
    optimizer.step();
  }
  model.hidden = {layer_of(network.first, Outputs::none), layer_of(network.second, Outputs::none)};
  model.experts.clear();
  for (std::size_t e = 0; e < network.last.size(); ++e)
    model.experts.push_back(
        {layer_of(network.last[e], Outputs::targets), layer_of(network.direct[e], Outputs::targets)});
  if (network.last.size() > 1) model.gate = layer_of(network.gate, Outputs::none);
  set_usual_distance(rows, model);
}

}  // namespace

CodecModel train_network(const std::vector<const Row*>& rows, const TrainingOptions& options) {
  std::vector<const Row*> training;
  std::vector<const Row*> intervals;
  for (const Row* row : rows) {
    if (row->part == Part::train) training.push_back(row);
    if (row->part == Part::intervals) intervals.push_back(row);
  }
  CodecModel model;
  model.codec = rows.front()->run.codec;
  model.version = static_cast<std::uint16_t>(rows.front()->run.codec_version);
  model.foreign = rows.front()->run.codec_version == kForeignVersion;
  model.power_steps = model.foreign && rows.front()->run.power_steps;
  for (const Row* row : rows)
    if (model.foreign) model.types |= std::uint32_t{1} << static_cast<unsigned>(row->dtype);
  torch::set_num_threads(1);
  if (!training.empty()) {
    fit(training, options, model);
    widen(intervals, model);
  }
  training.insert(training.end(), intervals.begin(), intervals.end());
  fit(training.empty() ? rows : training, options, model);
  return model;
}

}  // namespace quern::surrogate

// Torch trains; what it found becomes whole numbers.
#include "codecs/stencil/train/point_network.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "codecs/stencil/networks/point_rules.h"
#include "surrogate/train/torch_layers.h"

namespace quern::codec::stencil::train {
namespace {

constexpr std::int64_t kBatch = 1024;
constexpr unsigned kInnerBits = 15;

/// Rounds rows of weights to 8 bits, and passes gradients on as if it had not.
torch::Tensor rounded(const torch::Tensor& w, bool whole) {
  if (!whole) return w;
  const torch::Tensor scale = std::get<0>(w.abs().max(1, true)).clamp_min(1e-12) / 127;
  return w + ((w / scale).round() * scale - w).detach();
}

/// Three layers; the last gives the prediction and, for the loss alone, the logarithm of a scale. It begins at 0.
struct PointNetwork : torch::nn::Module {
  PointNetwork(std::int64_t inputs, const std::array<std::int64_t, 2>& hidden) {
    const std::array<std::int64_t, 4> sizes{inputs, hidden[0], hidden[1], 2};
    for (std::size_t n = 0; n < 3; ++n) {
      const double spread = n == 2 ? 0.0 : std::sqrt(2.0 / static_cast<double>(sizes[n]));
      weights.push_back(register_parameter("w" + std::to_string(n), torch::randn({sizes[n + 1], sizes[n]}) * spread));
      biases.push_back(register_parameter("b" + std::to_string(n), torch::zeros({sizes[n + 1]})));
    }
  }
  /// Also tells the largest magnitudes inside, for their units.
  torch::Tensor forward(torch::Tensor x, bool whole, std::array<double, 2>* largest = nullptr) const {
    for (std::size_t n = 0; n < 3; ++n) {
      x = torch::matmul(x, rounded(weights[n], whole).t()) + biases[n];
      if (n == 2) break;
      x = torch::max(x, x * 0.125);
      if (largest != nullptr) (*largest)[n] = x.abs().max().item<double>();
    }
    return x;
  }
  std::vector<torch::Tensor> weights, biases;
};

/// Bits of the code of what is left, by a logistic distribution around the prediction.
torch::Tensor code_bits(const torch::Tensor& left, const torch::Tensor& scale, const torch::Tensor& out) {
  const torch::Tensor error = left - out.select(1, 0) * scale;
  const torch::Tensor inverse = torch::exp(-out.select(1, 1).clamp(-4, 6));
  const torch::Tensor above = (0.5 - error) * inverse;
  const torch::Tensor below = (-0.5 - error) * inverse;
  return -(torch::log_sigmoid(above) + torch::log_sigmoid(-below) + torch::log1p(-torch::exp(-inverse))) /
         std::log(2.0);
}

kernels::Network whole_numbers(const PointNetwork& network, const std::array<double, 2>& largest) {
  kernels::Network out;
  out.in.channels = static_cast<std::uint32_t>(network.weights[0].size(1));
  double unit = std::exp2(kNetworkInputBits);
  unsigned bits = out.in_bits;
  for (std::size_t n = 0; n < 3; ++n) {
    kernels::NetworkLayer layer;
    layer.kind = kernels::LayerKind::convolution;
    // The scale that the last layer says is for the loss alone.
    const std::int64_t rows = n == 2 ? 1 : network.weights[n].size(0);
    layer.out.channels = static_cast<std::uint32_t>(rows);
    layer.activation = n == 2 ? kernels::Activation::none : kernels::Activation::leaky;
    layer.bits = static_cast<std::uint8_t>(n == 2 ? 16 : kInnerBits);
    const double out_unit =
        n == 2 ? std::exp2(kNetworkOutputBits) : std::exp2(std::floor(std::log2(8192 / std::max(largest[n], 1e-3))));
    surrogate::quantize_layer(network.weights[n].narrow(0, 0, rows).contiguous(),
                              network.biases[n].narrow(0, 0, rows).contiguous(), {unit, out_unit, bits}, layer);
    out.layers.push_back(std::move(layer));
    unit = out_unit;
    bits = kInnerBits;
  }
  if (const char* const wrong = kernels::check_network(out); wrong != nullptr) throw std::runtime_error(wrong);
  return out;
}

}  // namespace

kernels::Network train_point_network(const ClassPoints& points, const PointNetworkOptions& options) {
  torch::manual_seed(options.seed);
  torch::set_num_threads(1);  // products are too small for more
  const auto inputs = static_cast<std::int64_t>(points.taps) + 1;
  const auto count = static_cast<std::int64_t>(points.left.size());
  if (count < 64) throw std::runtime_error("the training files have too few points; name more or larger files");
  const torch::Tensor x =
      torch::from_blob(const_cast<std::int16_t*>(points.inputs.data()), {count, inputs}, torch::kShort)
          .to(torch::kFloat) *
      std::exp2(-static_cast<double>(kNetworkInputBits));
  const torch::Tensor scale = torch::from_blob(const_cast<float*>(points.scale.data()), {count}, torch::kFloat).clone();
  const torch::Tensor left = torch::from_blob(const_cast<float*>(points.left.data()), {count}, torch::kFloat).clone();
  const torch::Tensor weight =
      torch::from_blob(const_cast<float*>(points.weight.data()), {count}, torch::kFloat).clone();
  PointNetwork network(inputs, options.hidden);
  torch::optim::Adam optimizer(network.parameters(), torch::optim::AdamOptions(4e-3));
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t steps = 0;
  const auto share = [&] {
    if (options.steps != UINT64_MAX) return static_cast<double>(steps) / static_cast<double>(options.steps);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / options.seconds;
  };
  for (double done = 0; done < 1; done = share()) {
    for (auto& group : optimizer.param_groups())
      static_cast<torch::optim::AdamOptions&>(group.options()).lr(4e-3 * (1 - 0.97 * done));
    const torch::Tensor some = torch::randint(count, {kBatch}, torch::kLong);
    const torch::Tensor out = network.forward(x.index_select(0, some), done > 0.75);
    const torch::Tensor bits = code_bits(left.index_select(0, some), scale.index_select(0, some), out);
    const torch::Tensor loss = (bits * weight.index_select(0, some)).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    ++steps;
    if (!std::isfinite(loss.item<double>())) throw std::runtime_error("training diverged; try another --seed");
  }
  torch::NoGradGuard guard;
  std::array<double, 2> largest{};
  network.forward(x, true, &largest);
  return whole_numbers(network, largest);
}

}  // namespace quern::codec::stencil::train

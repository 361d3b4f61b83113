// The engine against LibTorch: whole numbers in binary64 are exact while products stay below 2^53.
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "kernels/network/cpu/evaluate.h"
#include "tests/unit_network/random_networks.h"

namespace quern::kernels {
namespace {

/// Channels before places, as Torch has them.
torch::Tensor to_torch(const std::vector<std::int16_t>& values, const TensorShape& shape) {
  std::vector<double> numbers(values.begin(), values.end());
  return torch::from_blob(numbers.data(), {1, shape.extents[0], shape.extents[1], shape.extents[2], shape.channels},
                          torch::kDouble)
      .permute({0, 4, 1, 2, 3})
      .clone();
}

torch::Tensor finished(const torch::Tensor& sums, const NetworkLayer& layer) {
  std::vector<double> multipliers(layer.multipliers.begin(), layer.multipliers.end());
  const auto count = static_cast<std::int64_t>(multipliers.size());
  const torch::Tensor m = torch::from_blob(multipliers.data(), {1, count, 1, 1, 1}, torch::kDouble);
  torch::Tensor v = torch::floor((sums * m + std::ldexp(1.0, layer.shift - 1)) / std::ldexp(1.0, layer.shift));
  if (layer.activation == Activation::relu) v = torch::clamp_min(v, 0);
  if (layer.activation == Activation::leaky) v = torch::max(v, torch::floor(v / 8));
  const double limit = std::ldexp(1.0, layer.bits - 1) - 1;
  return torch::clamp(v, -limit, limit);
}

torch::Tensor convolved(const torch::Tensor& x, const NetworkLayer& layer) {
  namespace f = torch::nn::functional;
  std::vector<double> weights(layer.weights.begin(), layer.weights.end());
  std::vector<double> bias(layer.bias.begin(), layer.bias.end());
  const torch::Tensor w =
      torch::from_blob(weights.data(), {layer.out.channels, layer.width[0], layer.width[1], layer.width[2], x.size(1)},
                       torch::kDouble)
          .permute({0, 4, 1, 2, 3})
          .contiguous();
  const torch::Tensor b = torch::from_blob(bias.data(), {static_cast<std::int64_t>(bias.size())}, torch::kDouble);
  const auto pad = [&](std::size_t a) { return static_cast<std::int64_t>(layer.width[a] / 2); };
  const torch::Tensor padded =
      f::pad(x, f::PadFuncOptions({pad(2), pad(2), pad(1), pad(1), pad(0), pad(0)}).mode(torch::kReplicate));
  const std::vector<std::int64_t> steps(layer.step.begin(), layer.step.end());
  return finished(torch::conv3d(padded, w, b, steps), layer);
}

TEST(NetworkOracle, Convolutions_AreThoseOfTorch) {
  torch::set_num_threads(1);
  std::size_t compared = 0;
  for (std::uint64_t n = 0; n < 24; ++n) {
    Network network = test::random_network(n);
    ASSERT_EQ(check_network(network), nullptr);
    // Layer 1, the first convolution, on what folding gives.
    const std::vector<std::int16_t> in = test::random_inputs(network, n);
    Network first = network;
    first.layers.resize(1);
    Network second = network;
    second.layers.resize(2);
    const PreparedNetwork folding(first), whole(second);
    NetworkRoom room;
    std::vector<std::int16_t> folded(folding.outputs()), out(whole.outputs());
    folding.run(network_kernels(best_isa()), in, room, folded);
    NetworkRoom other;
    whole.run(network_kernels(best_isa()), in, other, out);
    const torch::Tensor expected = convolved(to_torch(folded, first.out()), second.layers[1]);
    EXPECT_TRUE(torch::equal(expected, to_torch(out, second.out()))) << n;
    compared += out.size();
  }
  EXPECT_GT(compared, 1000u);
}

}  // namespace
}  // namespace quern::kernels

// Tensors to vectors of binary64, and those to whole numbers.
#include "surrogate/train/torch_layers.h"

#include <stdexcept>
#include <vector>

#include "models/quantize_rows.h"

namespace quern::surrogate {
namespace {

std::vector<double> doubles_of(const torch::Tensor& t) {
  const torch::Tensor flat = t.detach().to(torch::kDouble).contiguous().reshape({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace

void quantize_layer(const torch::Tensor& weights, const torch::Tensor& bias, const LayerUnits& units,
                    kernels::NetworkLayer& layer) {
  const std::vector<double> w = doubles_of(weights);
  const std::vector<double> b = doubles_of(bias);
  if (!models::quantize_rows({w, b, units.in_unit, units.out_unit, units.in_bits}, layer))
    throw std::runtime_error("the trained weights do not fit the engine; train again with another --seed");
}

torch::Tensor convolve_replicated(const torch::Tensor& x, const torch::Tensor& weights, const torch::Tensor& bias,
                                  const std::vector<std::int64_t>& step) {
  const auto pad = [&](std::int64_t axis) { return weights.size(2 + axis) / 2; };
  const torch::Tensor padded = torch::nn::functional::pad(
      x,
      torch::nn::functional::PadFuncOptions({pad(2), pad(2), pad(1), pad(1), pad(0), pad(0)}).mode(torch::kReplicate));
  return torch::conv3d(padded, weights, bias, step);
}

}  // namespace quern::surrogate

// Layers of LibTorch as layers of whole numbers.
#pragma once

#include <torch/torch.h>

#include "kernels/network/network.h"

namespace quern::surrogate {

/// How numbers are stored before and after a layer: times a unit, in so many bits.
struct LayerUnits {
  double in_unit = 1;
  double out_unit = 1;
  unsigned in_bits = 16;
};

/// Sets a layer's weights, bias and scales from tensors of a row for each output. Throws std::runtime_error where they
/// do not fit the engine.
void quantize_layer(const torch::Tensor& weights, const torch::Tensor& bias, const LayerUnits& units,
                    kernels::NetworkLayer& layer);

/// A convolution whose places beyond the edge are the nearest inside, as the engine computes it. `x`: items, channels
/// and three extents; `weights`: outputs, channels and three widths of 1 or 3; `step` along each axis.
torch::Tensor convolve_replicated(const torch::Tensor& x, const torch::Tensor& weights, const torch::Tensor& bias,
                                  const std::vector<std::int64_t>& step);

}  // namespace quern::surrogate

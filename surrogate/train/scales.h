// Inputs and targets as the networks in training see them.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include <torch/torch.h>

#include "surrogate/train/runs_table.h"

namespace quern::surrogate {

/// A unit of each target in the loss.
inline constexpr std::array<double, kTargets> kUnits{0.3, 3, 1, 0.2, 0.2, 0.5, 0.5};

/// An input x becomes (x - mean) * scale.
struct Scales {
  std::vector<float> mean, scale;
};

/// Of the inputs that are used; others, and those that hardly vary, get a scale of 0.
Scales scales_of(const std::vector<const Row*>& rows, const std::function<bool(std::size_t)>& is_used);

/// Rows x inputs, each kept within -4 and 4.
torch::Tensor scaled_inputs(const std::vector<const Row*>& rows, const Scales& scales);

/// Steps fall from `first` as half a cosine.
void set_step(torch::optim::AdamW& optimizer, double first, int epoch, int epochs);

}  // namespace quern::surrogate

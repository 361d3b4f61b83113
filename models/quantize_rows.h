// Weights of binary64 as the whole numbers of a layer: how trainers make networks.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/network/network.h"

namespace quern::models {

/// What a layer is made from: a row of weights and a bias for each output or output channel.
struct RealRows {
  std::span<const double> weights;  ///< row by row
  std::span<const double> bias;
  double in_unit = 1;   ///< an input x is stored as x * in_unit
  double out_unit = 1;  ///< an output y is stored as y * out_unit
  unsigned in_bits = 16;
};

/// Sets weights, bias, multipliers and shift of a layer: each row gets the finest scale for which its weights fit 8 bits
/// and its sum cannot overflow. Weights are rounded to nearest. False where a number is not finite or no scale fits.
bool quantize_rows(const RealRows& rows, kernels::NetworkLayer& layer);

}  // namespace quern::models

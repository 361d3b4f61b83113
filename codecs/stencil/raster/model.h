// What a chunk in raster order stores before its residuals: format of values, weights of predictions and contexts,
// distributions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/prediction_format.h"
#include "coding/context.h"
#include "coding/distributions.h"
#include "kernels/stencil/taps.h"

namespace quern::codec::stencil {

inline constexpr unsigned kWeightSumBits = 4;  ///< magnitudes of a row class's weights sum to at most 2^this

/// Weights of one row class, in the order of taps_of().
using Weights = std::array<std::int32_t, kernels::kMaxTaps>;

struct RasterModel {
  PredictionFormat format;
  unsigned stream_bits = 0;  ///< residuals lie in 2^stream_bits streams
  bool mean = false;         ///< later planes look at the mean of earlier ones, too
  std::array<bool, kernels::kRowClasses> has_weights{};
  std::array<Weights, kernels::kRowClasses> weights{};  ///< set for every class that occurs, stored or not
  std::array<std::uint32_t, kernels::kMaxContextTaps> context_weights{};
  std::uint32_t context_constant = 0;
  coding::Distributions distributions{};
};

/// Gives every class without stored weights those of another class, or Lorenzo's.
void complete_weights(kernels::StencilShape shape, RasterModel& model);

void write_raster_model(const RasterModel& model, kernels::StencilShape shape, Vector<std::uint8_t>& out);
/// Reads the model of a chunk and completes it; advances `bytes`. `corrupt` when it breaks a rule.
Status read_raster_model(std::span<const std::uint8_t>& bytes, const kernels::StencilExtents& extents,
                         RasterModel& model);

}  // namespace quern::codec::stencil

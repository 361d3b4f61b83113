// Networks of super-resolution in binary32, and their way to whole numbers.
#pragma once

#include <cstdint>
#include <functional>

#include "codecs/stencil/train/training_points.h"
#include "kernels/network/network.h"

namespace quern::codec::stencil::train {

struct PointNetworkOptions {
  std::array<std::int64_t, 2> hidden{24, 16};  ///< outputs of the two layers between inputs and prediction
  double seconds = 8;
  std::uint64_t steps = UINT64_MAX;
  std::uint64_t seed = 1;
};

/// Trains one network for the bits that codes of its class take: those of a logistic distribution whose scale the
/// network says too, integrated over the cell of a code. Weights are rounded to 8 bits in the last quarter of the time.
/// The scale is left out of what is returned, a checked network of one place. Throws std::runtime_error where training
/// diverges, or numbers do not fit the engine.
kernels::Network train_point_network(const ClassPoints& points, const PointNetworkOptions& options);

}  // namespace quern::codec::stencil::train

// Arrays as points to train on: what networks of super-resolution see of points of the finest level, as decoders
// reconstruct it, and where the points really are.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "surrogate/train/training_arrays.h"

namespace quern::codec::stencil::train {

/// Points of one parity class.
struct ClassPoints {
  std::size_t taps = 0;              ///< inputs are one more a point
  std::vector<std::int16_t> inputs;  ///< as an encoder makes them, point by point
  std::vector<float> scale;          ///< what an output of 1 counts, in steps of the quantizer
  std::vector<float> left;           ///< in steps, from what the best linear prediction leaves of the point
  std::vector<float> weight;         ///< points that one stands for: most that are predicted well are left out
};

struct PointOptions {
  double bound = 1e-2;          ///< of the range
  std::size_t taps = 36;        ///< at most SquareSums::kMost - 1
  std::size_t points = 300000;  ///< of a class, of all arrays together, before some are left out
  std::uint64_t seed = 1;
};

/// Axes of an array longer than 1: 2 and 3 have networks.
std::size_t long_axes(const surrogate::TrainingArray& array);

/// Points of all classes that may have a network, by class; those that have none are empty. Arrays are encoded in
/// levels under the bound; what decoders make of them is what networks see. Of each array and class a linear prediction
/// is fitted first: networks learn what it leaves. Throws std::runtime_error.
std::array<ClassPoints, 8> sample_points(const std::vector<surrogate::TrainingArray>& arrays,
                                         const PointOptions& options);

}  // namespace quern::codec::stencil::train

// Predicted points as lattice sites: what contexts and the choice of sites learn from a prediction.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/lidar/geometry/blocks.h"
#include "codecs/lidar/point_codec.h"

namespace quern::codec::lidar {

/// Streams of more blocks use no prediction: the sites of each are found by a walk over all of them.
inline constexpr std::uint64_t kMostExpectingBlocks = 64;

/// Whether all points lie within kMostPredictedUnits and have a weight from 1 to kMostPredictedWeight.
bool is_prediction(Prediction prediction);

/// Sites at which points are expected, rising, and the sum of the weights of these points, at most kMostSiteWeight.
struct ExpectedSites {
  Vector<Site> sites;
  Vector<std::uint8_t> weights;
};
inline constexpr unsigned kMostSiteWeight = 255;

/// The site nearest to each predicted point, the even one of equals; each once. May throw std::bad_alloc.
ExpectedSites expected_sites(Prediction prediction, const Lattice& lattice);

/// Those that lie in the cubes of a block of this origin and depth. O(sites). May throw std::bad_alloc.
ExpectedCubes expected_cubes(const ExpectedSites& expected, const Site& origin, unsigned depth, bool centred);

/// Low half of the XXH3-64 of coordinates and, with `weighed`, weights, 24 or 25 little-endian bytes a point: a decoder
/// is to have the same prediction.
std::uint32_t prediction_check(Prediction prediction, bool weighed);

}  // namespace quern::codec::lidar

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

/// Whether all points lie within kMostPredictedUnits and have a weight of at most kMostPredictedWeight.
bool is_prediction(Prediction prediction);

/// Whether a point has weight 0: it is known, but not expected. Streams with such predictions are of version 3.
bool knows_more(Prediction prediction);

/// Sites near which points lie, and the sum of the weights of these points.
struct WeighedSites {
  Vector<Site> sites;
  Vector<std::uint32_t> weights;
};
/// Contexts see weights up to this.
inline constexpr std::uint32_t kMostSiteWeight = 255;

struct PredictedSites {
  WeighedSites expected;  ///< of points with a weight: rising, each once
  WeighedSites known;     ///< of points of weight 0, each of which counts one: in no order, some several times
};

/// The site nearest to each predicted point, the even one of equals. May throw std::bad_alloc.
PredictedSites predicted_sites(Prediction prediction, const Lattice& lattice);

/// Those that lie in the cubes of a block of this origin and depth. O(n log n) for n sites. May throw std::bad_alloc.
BlockPrediction block_prediction(const PredictedSites& sites, const Site& origin, unsigned depth, bool centred);

/// Low half of the XXH3-64 of coordinates and, with `weighed`, weights, 24 or 25 little-endian bytes a point: a decoder
/// is to have the same prediction.
std::uint32_t prediction_check(Prediction prediction, bool weighed);

}  // namespace quern::codec::lidar

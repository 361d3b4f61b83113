// Geometry of a tile: 1024 values as 32 rows of 32 lanes, the unit that one warp or one SIMD loop works on.
//   kLine      1-D, lane-major: element i is lane i/32, row i%32, so that a lane holds 32 neighbours
//   kPlane     2-D, 32 x 32: row = y, lane = x
//   kBlock     3-D, 4 x 8 x 32: row = 8*z + y, lane = x
// A group is the 8 rows 8k..8k+7 of one lane; its residuals share the bytes of the bit planes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/common/lanes.h"

namespace quern::kernels {

inline constexpr unsigned kTileElems = kLanes * kRows;
inline constexpr unsigned kGroups = kRows / 8;

/// Stored in streams.
enum class TileShape : std::uint8_t { line = 0, plane = 1, block = 2 };

/// Extents of a tile, slowest axis first.
[[gnu::always_inline]] constexpr std::array<unsigned, 3> tile_extents(TileShape shape) {
  switch (shape) {
    case TileShape::line: return {1, 1, 1024};
    case TileShape::plane: return {1, 32, 32};
    case TileShape::block: return {4, 8, 32};
  }
  return {0, 0, 0};
}

/// Rows of one z-plane: predictors along y start anew there.
[[gnu::always_inline]] constexpr unsigned rows_per_plane(TileShape shape) { return shape == TileShape::block ? 8 : 32; }

/// Predictors, stored in streams. Bits 0, 1, 2: Lorenzo differences along x, y, z (any product of them).
enum class Predictor : std::uint8_t {
  none = 0,  ///< distance from the tile's first value
  x = 1,
  y = 2,
  xy = 3,
  z = 4,
  xz = 5,
  yz = 6,
  xyz = 7,
  xx = 8,  ///< second difference along x
  yy = 9,  ///< second difference along y
};
inline constexpr unsigned kPredictors = 10;

/// Whether a predictor means anything on a tile shape: lines have x only, planes no z.
constexpr bool predictor_fits(Predictor p, TileShape shape) {
  switch (shape) {
    case TileShape::line: return p == Predictor::none || p == Predictor::x || p == Predictor::xx;
    case TileShape::plane: return static_cast<unsigned>(p) < 4 || p == Predictor::xx || p == Predictor::yy;
    case TileShape::block: return static_cast<unsigned>(p) < kPredictors;
  }
  return false;
}

}  // namespace quern::kernels

// A block: lattice sites that are coded as one octree, without help from others. Sites come in Morton order of the
// cubes that hold them.
#pragma once

#include <array>
#include <cstdint>

#include <quern/memory.h>

namespace quern::codec::lidar {

/// Lattice sites are the integer points (i, j, k), times a spacing. A centred lattice has only those whose three
/// coordinates are all even or all odd: body-centred cubic, the lattice that covers space within a distance with the
/// fewest points (Conway and Sloane, Sphere Packings, Lattices and Groups, ch. 2). A cube holds one site, or, where the
/// lattice is centred, an even and an odd one.
struct Lattice {
  std::int64_t spacing = 1;  ///< in units
  bool centred = true;
};

struct Block {
  std::array<std::int64_t, 3> origin{};  ///< lattice coordinates of the lowest site; even where the lattice is centred
  unsigned depth = 0;                    ///< levels below the root, at most kMostDepth
  Vector<std::uint64_t> cubes;           ///< Morton keys below 8^depth, rising
  Vector<std::uint8_t> halves;           ///< centred: bit 0 the even site, bit 1 the odd one; else 1
  Vector<std::uint32_t> counts;          ///< points at each site, in order; empty where only the set is coded
};

/// Cubes where points are expected, or known to stand, as in Block. Empty: the prediction has none.
struct ExpectedCubes {
  Vector<std::uint64_t> cubes;
  Vector<std::uint8_t> halves;
  /// Of the points at the even and at the odd site of each cube.
  Vector<std::array<std::uint8_t, 2>> weights;
};

/// The part of a prediction that lies in a block.
struct BlockPrediction {
  ExpectedCubes expected;
  ExpectedCubes known;  ///< cubes in which something stands, seen or not; their weights count points
};

/// What a tree's contexts learn from a prediction: nothing; which sites are expected (streams of version 1); how surely
/// (version 2); and what stands in each cube, seen or not (version 3).
enum class Expectation : std::uint8_t { none, marked, weighed, known };
constexpr bool has_weights(Expectation expects) { return expects >= Expectation::weighed; }

/// What contexts may know of a scan: the sensor stands at the origin of the coordinates.
struct Surroundings {
  Lattice lattice;
  std::uint32_t units_per_metre = 10000;
};

}  // namespace quern::codec::lidar

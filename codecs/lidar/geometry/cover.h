// Which lattice sites stand for a set of points: as few as a greedy set cover finds such that every point has one
// within reach. Each site chosen has a point within reach, too, so the bound holds in both directions.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/lidar/geometry/lattice.h"

namespace quern::codec::lidar {

/// `expected`: packed sites that cost fewer bits, since a prediction names them. With `keep_expected` all of them that
/// are candidates are chosen: they cost less than telling which are not. Else they are preferred, and sites stay few.
/// Packed sites, each once, in no order. Every site the lattice has within `reach` of a point is a candidate. Time
/// grows with the points, memory with 40 bytes for each. May throw std::bad_alloc.
Vector<std::uint64_t> cover(std::span<const FinePoint> points, const Lattice& lattice, std::int64_t reach,
                            std::span<const std::uint64_t> expected = {}, bool keep_expected = false);

}  // namespace quern::codec::lidar

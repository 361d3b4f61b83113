// From points to blocks of lattice sites, and back to coordinates.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/lidar/geometry/lattice.h"

namespace quern::codec::lidar {

/// Lattice sites of one slice at most, where the caller names no number of slices.
inline constexpr std::uint64_t kSliceSites = 1U << 16;

using Site = std::array<std::int64_t, 3>;  ///< lattice coordinates

/// How points become blocks.
struct BlockRequest {
  Lattice lattice;
  std::int64_t reach = 0;          ///< in fine units
  bool each_point = false;         ///< count points at their nearest sites; else cover them
  std::uint32_t slices = 0;        ///< of each region, 0: by kSliceSites
  std::span<const Site> expected;  ///< sites that a cover prefers
  bool keep_expected = false;      ///< or takes, see cover()
};

struct BlockList {
  Vector<Block> blocks;
  /// each_point: for each point, the place of its site among all sites of all blocks.
  Vector<std::uint32_t> site_of_point;
};

/// Space is cut into regions of 2^20 sites a side where it must be, and regions into slices. May throw std::bad_alloc.
BlockList make_blocks(std::span<const FinePoint> points, const BlockRequest& request);

/// Lattice coordinates of all sites of a block, in their order, appended. May throw std::bad_alloc.
void append_sites(const Block& block, bool centred, Vector<Site>& sites);

}  // namespace quern::codec::lidar

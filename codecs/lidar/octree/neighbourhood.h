// Where the neighbours of an octree's nodes lie: tables for the 27 nodes around a node (itself the 14th) and for the
// 4 x 4 x 4 children in and around it.
//
//   slot    9 (dx + 1) + 3 (dy + 1) + (dz + 1)     d = -1, 0, 1: a node's neighbour
//   child   4 x + 2 y + z                          0 or 1: a child of a node
//   site    16 x + 4 y + z                         0..3: 1 and 2 are the node's own children
#pragma once

#include <array>
#include <cstdint>

namespace quern::codec::lidar {

inline constexpr unsigned kSlots = 27;
inline constexpr unsigned kOwnSlot = 13;

/// Index of each neighbour among the nodes of its level, -1 where there is none.
using Neighbours = std::array<std::int32_t, kSlots>;

struct ChildNeighbour {
  std::uint8_t slot;   ///< the neighbour of the parent
  std::uint8_t child;  ///< and its child
};

namespace detail {

constexpr int step_of(unsigned slot, unsigned axis) {
  constexpr unsigned kDivisor[3] = {9, 3, 1};
  return static_cast<int>(slot / kDivisor[axis] % 3) - 1;
}

constexpr std::array<std::array<ChildNeighbour, kSlots>, 8> make_child_neighbours() {
  std::array<std::array<ChildNeighbour, kSlots>, 8> table{};
  for (unsigned child = 0; child < 8; ++child) {
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      unsigned parent_slot = 0;
      unsigned other = 0;
      for (unsigned axis = 0; axis < 3; ++axis) {
        const int at = static_cast<int>(child >> (2 - axis) & 1) + step_of(slot, axis);
        parent_slot = 3 * parent_slot + (at < 0 ? 0U : at > 1 ? 2U : 1U);
        other = 2 * other + static_cast<unsigned>(at & 1);
      }
      table[child][slot] = {static_cast<std::uint8_t>(parent_slot), static_cast<std::uint8_t>(other)};
    }
  }
  return table;
}

/// Sites that the children of a neighbour take, for each occupancy.
constexpr std::array<std::array<std::uint64_t, 256>, kSlots> make_sites() {
  std::array<std::array<std::uint64_t, 256>, kSlots> table{};
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    for (unsigned child = 0; child < 8; ++child) {
      unsigned site = 0;
      bool inside = true;
      for (unsigned axis = 0; axis < 3; ++axis) {
        const int at = 1 + 2 * step_of(slot, axis) + static_cast<int>(child >> (2 - axis) & 1);
        inside = inside && at >= 0 && at <= 3;
        site = 4 * site + static_cast<unsigned>(at & 3);
      }
      if (!inside) continue;
      for (unsigned occupancy = 0; occupancy < 256; ++occupancy)
        if ((occupancy >> child & 1) != 0) table[slot][occupancy] |= UINT64_C(1) << site;
    }
  }
  return table;
}

/// Sites of a 3 x 3 x 3 window at the origin that differ from its middle in `axes` coordinates.
constexpr std::uint64_t window_sites(unsigned axes) {
  std::uint64_t mask = 0;
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    unsigned differ = 0;
    unsigned site = 0;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const int step = step_of(slot, axis);
      differ += step != 0 ? 1 : 0;
      site = 4 * site + static_cast<unsigned>(step + 1);
    }
    if (differ == axes) mask |= UINT64_C(1) << site;
  }
  return mask;
}

}  // namespace detail

inline constexpr auto kChildNeighbours = detail::make_child_neighbours();
inline constexpr auto kSites = detail::make_sites();
inline constexpr std::uint64_t kWindowFaces = detail::window_sites(1);
inline constexpr std::uint64_t kWindowEdges = detail::window_sites(2);
inline constexpr std::uint64_t kWindowCorners = detail::window_sites(3);
inline constexpr std::uint64_t kWindowMiddle = detail::window_sites(0);
inline constexpr std::uint64_t kWindow = kWindowFaces | kWindowEdges | kWindowCorners;

/// Lowest site of the window around a child; shifted down by it, the window begins at the origin.
constexpr unsigned window_at(unsigned child) { return 16 * (child >> 2 & 1) + 4 * (child >> 1 & 1) + (child & 1); }
/// Site of a node's own child.
constexpr unsigned own_site(unsigned child) { return window_at(child) + 21; }

/// Sites of a set. Where a machine has no instruction for it, this is faster than what compilers call.
constexpr unsigned count_sites(std::uint64_t sites) {
  sites -= sites >> 1 & UINT64_C(0x5555555555555555);
  sites = (sites & UINT64_C(0x3333333333333333)) + (sites >> 2 & UINT64_C(0x3333333333333333));
  sites = (sites + (sites >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
  return static_cast<unsigned>(sites * UINT64_C(0x0101010101010101) >> 56);
}

/// Slots of the six faces: -x, +x, -y, +y, -z, +z.
inline constexpr std::array<unsigned, 6> kFaceSlots = {4, 22, 10, 16, 12, 14};

}  // namespace quern::codec::lidar

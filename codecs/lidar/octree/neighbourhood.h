// Where the neighbours of an octree's nodes lie: tables for the 27 nodes around a node (itself the 14th) and for the
// 4 x 4 x 4 children in and around it.
//
//   slot    9 (dx + 1) + 3 (dy + 1) + (dz + 1)     d = -1, 0, 1: a node's neighbour
//   child   4 x + 2 y + z                          0 or 1: a child of a node
//   site    16 x + 4 y + z                         0..3: 1 and 2 are the node's own children
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace quern::codec::lidar {

inline constexpr unsigned kSlots = 27;
inline constexpr unsigned kOwnSlot = 13;
inline constexpr unsigned kNoSite = 64;
inline constexpr unsigned kMiddleSite = 21;  ///< of a window at the origin

/// Index of each neighbour among the nodes of its level, -1 where there is none.
using Neighbours = std::array<std::int32_t, kSlots>;

namespace detail {

constexpr int step_of(unsigned slot, unsigned axis) {
  constexpr unsigned kDivisor[3] = {9, 3, 1};
  return static_cast<int>(slot / kDivisor[axis] % 3) - 1;
}

/// What a neighbour means to the node in the middle, by the neighbour's site in a window at the origin.
struct Neighbourhood {
  std::array<std::uint8_t, 64> slots{};   ///< of the neighbour
  std::array<std::uint8_t, 64> turns{};   ///< from the sites of a node's own children to those of the neighbour's
  std::array<std::uint64_t, 64> sites{};  ///< that its children can take
  std::array<std::array<std::uint8_t, 8>, 64> child_sites{};  ///< of each of its children; kNoSite: outside
};

constexpr Neighbourhood make_neighbourhood() {
  Neighbourhood table{};
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    unsigned middle = 0;
    int turn = 0;
    for (unsigned axis = 0; axis < 3; ++axis) {
      middle = 4 * middle + static_cast<unsigned>(step_of(slot, axis) + 1);
      turn = 4 * turn + 2 * step_of(slot, axis);
    }
    table.slots[middle] = static_cast<std::uint8_t>(slot);
    table.turns[middle] = static_cast<std::uint8_t>(turn & 63);
    for (unsigned child = 0; child < 8; ++child) {
      unsigned site = 0;
      bool inside = true;
      for (unsigned axis = 0; axis < 3; ++axis) {
        const int at = 1 + 2 * step_of(slot, axis) + static_cast<int>(child >> (2 - axis) & 1);
        inside = inside && at >= 0 && at <= 3;
        site = 4 * site + static_cast<unsigned>(at & 3);
      }
      table.child_sites[middle][child] = static_cast<std::uint8_t>(inside ? site : kNoSite);
      if (inside) table.sites[middle] |= UINT64_C(1) << site;
    }
  }
  return table;
}

/// Sites that a node's own children take, for each occupancy.
constexpr std::array<std::uint64_t, 256> make_own_sites() {
  std::array<std::uint64_t, 256> table{};
  for (unsigned occupancy = 0; occupancy < 256; ++occupancy)
    for (unsigned child = 0; child < 8; ++child)
      if ((occupancy >> child & 1) != 0)
        table[occupancy] |= UINT64_C(1) << (kMiddleSite + 16 * (child >> 2 & 1) + 4 * (child >> 1 & 1) + (child & 1));
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

inline constexpr auto kNeighbourhood = detail::make_neighbourhood();
inline constexpr auto kOwnSites = detail::make_own_sites();
inline constexpr std::uint64_t kWindowFaces = detail::window_sites(1);
inline constexpr std::uint64_t kWindowEdges = detail::window_sites(2);
inline constexpr std::uint64_t kWindowCorners = detail::window_sites(3);
inline constexpr std::uint64_t kWindowMiddle = detail::window_sites(0);
inline constexpr std::uint64_t kWindow = kWindowFaces | kWindowEdges | kWindowCorners;
inline constexpr std::uint64_t kWholeWindow = kWindow | kWindowMiddle;

/// Lowest site of the window around a child; shifted down by it, the window begins at the origin.
constexpr unsigned window_at(unsigned child) { return 16 * (child >> 2 & 1) + 4 * (child >> 1 & 1) + (child & 1); }
/// Site of a node's own child.
constexpr unsigned own_site(unsigned child) { return window_at(child) + kMiddleSite; }

/// Sites of a set. Where a machine has no instruction for it, this is faster than what compilers call.
constexpr unsigned count_sites(std::uint64_t sites) {
  sites -= sites >> 1 & UINT64_C(0x5555555555555555);
  sites = (sites & UINT64_C(0x3333333333333333)) + (sites >> 2 & UINT64_C(0x3333333333333333));
  sites = (sites + (sites >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
  return static_cast<unsigned>(sites * UINT64_C(0x0101010101010101) >> 56);
}

/// Sites of a window's set, those at faces twice: they are moved to places that no site of a window has.
constexpr unsigned weight_sites(std::uint64_t window) {
  static_assert((kWindowFaces << 26 >> 26 & kWindowFaces) == kWindowFaces && (kWindowFaces << 26 & kWholeWindow) == 0);
  return count_sites(window | (window & kWindowFaces) << 26);
}

/// Sites of a window at the six faces: -x, +x, -y, +y, -z, +z.
inline constexpr std::array<unsigned, 6> kFaceSites = {5, 37, 17, 25, 20, 22};

/// Sites that the children of the neighbour at `site` of a window take in and around the node in its middle.
constexpr std::uint64_t sites_of_children(unsigned site, unsigned occupancy) {
  return std::rotl(kOwnSites[occupancy], kNeighbourhood.turns[site]) & kNeighbourhood.sites[site];
}

/// The 2 x 2 x 2 sites whose lowest is the first, as bits 4 x + 2 y + z.
constexpr unsigned corner_sites(std::uint64_t sites) {
  const auto low = static_cast<std::uint32_t>(sites) & 0x330033U;
  const std::uint32_t pairs = (low | low >> 2) & 0xF000FU;
  return (pairs | pairs >> 12) & 0xFFU;
}

/// Eight bits in the opposite order.
constexpr unsigned reversed(unsigned bits) {
  bits = (bits & 0x55) << 1 | (bits >> 1 & 0x55);
  bits = (bits & 0x33) << 2 | (bits >> 2 & 0x33);
  return (bits & 0x0F) << 4 | bits >> 4;
}

}  // namespace quern::codec::lidar

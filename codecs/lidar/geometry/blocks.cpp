#include "codecs/lidar/geometry/blocks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "codecs/lidar/geometry/cover.h"
#include "kernels/common/bits.h"

namespace quern::codec::lidar {
namespace {

constexpr unsigned kRegionBits = 20;
/// Sites between a region's origin and its first point; even, and no less than a finder's step.
constexpr std::int64_t kMargin = 4;

/// Sites of a region lie within it and a margin.
constexpr std::uint64_t kMostRegionSite = (UINT64_C(1) << kSiteBits) - 1;

/// A slice has about so many sites at least.
constexpr std::uint64_t kLeastSliceSites = 64;

struct Region {
  Site origin{};
  Vector<std::uint32_t> points;
};

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// Lowest site that regions count from, even in each axis.
Site lowest_site(std::span<const FinePoint> points, std::int64_t spacing) {
  Site lowest;
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::int64_t least = INT64_MAX;
    for (const FinePoint& point : points) least = std::min(least, point[axis]);
    lowest[axis] = 2 * floor_divide(floor_divide(least, spacing), 2);
  }
  return lowest;
}

Vector<Region> split_regions(std::span<const FinePoint> points, const Lattice& lattice) {
  Vector<Region> regions;
  if (points.empty()) return regions;
  const std::int64_t spacing = lattice.spacing * kFine;
  const Site lowest = lowest_site(points, spacing);
  Vector<std::pair<std::uint64_t, std::uint32_t>> placed(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::array<std::uint64_t, 3> at;
    for (unsigned axis = 0; axis < 3; ++axis)
      at[axis] = static_cast<std::uint64_t>(floor_divide(points[i][axis], spacing) - lowest[axis]) >> kRegionBits;
    placed[i] = {pack_site(at[0], at[1], at[2]), static_cast<std::uint32_t>(i)};
  }
  if (!std::is_sorted(placed.begin(), placed.end())) std::sort(placed.begin(), placed.end());
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (i == 0 || placed[i].first != placed[i - 1].first) {
      const auto at = unpack_site(placed[i].first);
      Region& region = regions.emplace_back();
      for (unsigned axis = 0; axis < 3; ++axis)
        region.origin[axis] = lowest[axis] + (static_cast<std::int64_t>(at[axis]) << kRegionBits) - kMargin;
    }
    regions.back().points.push_back(placed[i].second);
  }
  return regions;
}

/// Cuts sites, sorted by block_order, into blocks. `counts`: of points at each site, or empty.
void cut_blocks(const Site& origin, std::span<const std::uint64_t> orders, std::span<const std::uint32_t> counts,
                const BlockRequest& request, Vector<Block>& blocks) {
  const unsigned half_bits = request.lattice.centred ? 1 : 0;
  const std::uint64_t slices = std::min<std::uint64_t>(
      request.slices != 0 ? request.slices : 1 + orders.size() / kSliceSites, 1 + orders.size() / kLeastSliceSites);
  std::size_t begin = 0;
  for (std::uint64_t slice = 1; slice <= slices; ++slice) {
    std::size_t end = orders.size() * slice / slices;
    while (end < orders.size() && end > begin && orders[end] >> half_bits == orders[end - 1] >> half_bits) ++end;
    if (end <= begin) continue;
    const std::uint64_t first = orders[begin] >> half_bits;
    const std::uint64_t last = orders[end - 1] >> half_bits;
    Block& block = blocks.emplace_back();
    block.depth = (kernels::bit_length(first ^ last) + 2) / 3;
    const std::uint64_t root = first >> (3 * block.depth) << (3 * block.depth);
    const std::array<std::uint32_t, 3> corner = {morton_x(root), morton_y(root), morton_z(root)};
    for (unsigned axis = 0; axis < 3; ++axis)
      block.origin[axis] = origin[axis] + (std::int64_t{corner[axis]} << half_bits);
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t cube = (orders[i] >> half_bits) - root;
      const auto half = static_cast<std::uint8_t>(request.lattice.centred ? 1U << (orders[i] & 1) : 1U);
      if (!block.cubes.empty() && block.cubes.back() == cube) {
        block.halves.back() = static_cast<std::uint8_t>(block.halves.back() | half);
      } else {
        block.cubes.push_back(cube);
        block.halves.push_back(half);
      }
    }
    if (!counts.empty())
      block.counts.assign(counts.begin() + static_cast<std::ptrdiff_t>(begin),
                          counts.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
}

/// The region's points, from its origin.
Vector<FinePoint> shifted_points(std::span<const FinePoint> points, const Region& region, std::int64_t spacing) {
  Vector<FinePoint> shifted;
  shifted.reserve(region.points.size());
  for (const std::uint32_t i : region.points) {
    FinePoint& point = shifted.emplace_back(points[i]);
    for (unsigned axis = 0; axis < 3; ++axis) point[axis] -= region.origin[axis] * spacing;
  }
  return shifted;
}

/// Expected sites of a region, packed.
Vector<std::uint64_t> expected_in(const Region& region, std::span<const Site> expected) {
  Vector<std::uint64_t> packed;
  for (const Site& site : expected) {
    std::array<std::uint64_t, 3> at;
    for (unsigned axis = 0; axis < 3; ++axis) at[axis] = static_cast<std::uint64_t>(site[axis] - region.origin[axis]);
    if (std::max({at[0], at[1], at[2]}) <= kMostRegionSite) packed.push_back(pack_site(at[0], at[1], at[2]));
  }
  return packed;
}

void cover_region(const Region& region, std::span<const FinePoint> shifted, const BlockRequest& request,
                  BlockList& list) {
  Vector<std::uint64_t> orders =
      cover(shifted, request.lattice, request.reach, expected_in(region, request.expected), request.keep_expected);
  for (std::uint64_t& site : orders) site = block_order(site, request.lattice.centred);
  std::sort(orders.begin(), orders.end());
  cut_blocks(region.origin, orders, {}, request, list.blocks);
}

void count_region(const Region& region, std::span<const FinePoint> shifted, const BlockRequest& request,
                  std::uint32_t& sites, BlockList& list) {
  const SiteFinder finder(request.lattice, request.reach);
  Vector<std::pair<std::uint64_t, std::uint32_t>> placed(shifted.size());
  for (std::size_t i = 0; i < shifted.size(); ++i)
    placed[i] = {block_order(finder.nearest(shifted[i]), request.lattice.centred), region.points[i]};
  std::sort(placed.begin(), placed.end());
  Vector<std::uint64_t> orders;
  Vector<std::uint32_t> counts;
  for (const auto& [order, point] : placed) {
    if (orders.empty() || orders.back() != order) {
      orders.push_back(order);
      counts.push_back(0);
      ++sites;
    }
    ++counts.back();
    list.site_of_point[point] = sites - 1;
  }
  cut_blocks(region.origin, orders, counts, request, list.blocks);
}

}  // namespace

BlockList make_blocks(std::span<const FinePoint> points, const BlockRequest& request) {
  BlockList list;
  if (request.each_point) list.site_of_point.assign(points.size(), 0);
  std::uint32_t sites = 0;
  for (const Region& region : split_regions(points, request.lattice)) {
    const Vector<FinePoint> shifted = shifted_points(points, region, request.lattice.spacing * kFine);
    if (request.each_point) {
      count_region(region, shifted, request, sites, list);
    } else {
      cover_region(region, shifted, request, list);
    }
  }
  return list;
}

void append_sites(const Block& block, bool centred, Vector<Site>& sites) {
  const unsigned half_bits = centred ? 1 : 0;
  for (std::size_t i = 0; i < block.cubes.size(); ++i) {
    const std::array<std::uint32_t, 3> cube = {morton_x(block.cubes[i]), morton_y(block.cubes[i]),
                                               morton_z(block.cubes[i])};
    for (unsigned half = 0; half < 2; ++half) {
      if ((block.halves[i] >> half & 1) == 0) continue;
      Site& site = sites.emplace_back();
      for (unsigned axis = 0; axis < 3; ++axis)
        site[axis] = block.origin[axis] + (std::int64_t{cube[axis]} << half_bits) + half;
    }
  }
}

}  // namespace quern::codec::lidar

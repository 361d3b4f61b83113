// Layout and candidate choice by integer estimates on sample tiles.
#include "codecs/lorenzo/plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkBox;
using kernels::kPredictors;
using kernels::Predictor;

constexpr std::uint64_t kSampleTiles = 64;

using TileCosts = std::array<std::uint32_t, kPredictors>;

/// Sample tiles of one layout: what each predictor costs on each of them.
struct Sampled {
  std::vector<TileCosts> tiles;
  std::uint64_t elems = 0;
};

/// The leading part of a grid that a sample of `elems` elements covers wholly, as extents.
std::array<std::uint64_t, 3> covered(const std::array<std::uint64_t, 3>& extents, std::uint64_t elems) {
  const std::uint64_t plane = extents[1] * extents[2];
  if (elems >= plane) return {std::min(extents[0], elems / plane), extents[1], extents[2]};
  if (elems >= extents[2]) return {1, elems / extents[2], extents[2]};
  return {1, 1, elems};
}

Sampled sample(const PlanRequest& request, const Layout& layout, const kernels::ChunkRules& rules,
               const kernels::LorenzoKernels& kernels, void* scratch) {
  Sampled out;
  const ChunkGrid grid = make_grid(request.shape, layout, request.dtype);
  const auto extents = covered(grid.extents, request.sample.elems());
  const auto size = kernels::tile_extents(layout.tile);
  std::array<std::uint64_t, 3> counts{};
  for (std::size_t a = 0; a < 3; ++a) counts[a] = (extents[a] + size[a] - 1) / size[a];
  const std::uint64_t total = counts[0] * counts[1] * counts[2];
  const std::uint64_t wanted = std::min(total, kSampleTiles);
  const auto* data = static_cast<const std::uint8_t*>(request.sample.data);
  for (std::uint64_t i = 0; i < wanted; ++i) {
    // floor(total * (2i + 1) / (2 * wanted)): evenly spaced, without a product that could overflow.
    const std::uint64_t part = 2 * wanted;
    const std::uint64_t index = total / part * (2 * i + 1) + total % part * (2 * i + 1) / part;
    const std::array<std::uint64_t, 3> at{index / (counts[1] * counts[2]) * size[0],
                                          index / counts[2] % counts[1] * size[1], index % counts[2] * size[2]};
    ChunkBox box;
    for (std::size_t a = 0; a < 3; ++a) box.extents[a] = std::min<std::uint64_t>(size[a], extents[a] - at[a]);
    box.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
    const std::uint64_t offset = at[0] * box.strides[0] + at[1] * box.strides[1] + at[2];
    std::uint32_t bytes[kPredictors];
    kernels.estimate(rules, data + offset * dtype_bytes(request.dtype), box, bytes, scratch);
    TileCosts costs{};
    std::copy(std::begin(bytes), std::end(bytes), costs.begin());
    out.tiles.push_back(costs);
    out.elems += box.extents[0] * box.extents[1] * box.extents[2];
  }
  return out;
}

/// Greedy set of candidates; returns the sum of the cheapest costs.
std::uint64_t choose_candidates(const Sampled& sampled, const Layout& layout, kernels::ChunkRules& rules) {
  std::vector<std::uint32_t> best(sampled.tiles.size(), UINT32_MAX);
  std::uint64_t best_sum = UINT64_MAX;
  rules.candidate_count = 0;
  while (rules.candidate_count < kernels::kMaxCandidates) {
    std::uint64_t sum = UINT64_MAX;
    unsigned chosen = 0;
    for (unsigned p = 0; p < kPredictors; ++p) {
      if (!kernels::predictor_fits(static_cast<Predictor>(p), layout.tile)) continue;
      std::uint64_t with = 0;
      for (std::size_t t = 0; t < best.size(); ++t) with += std::min(best[t], sampled.tiles[t][p]);
      if (with < sum) {
        sum = with;
        chosen = p;
      }
    }
    if (rules.candidate_count > 0 && sum + sum / 128 >= best_sum) break;
    rules.candidates[rules.candidate_count++] = static_cast<Predictor>(chosen);
    for (std::size_t t = 0; t < best.size(); ++t) best[t] = std::min(best[t], sampled.tiles[t][chosen]);
    best_sum = sum;
  }
  return best_sum;
}

std::uint64_t chunks_of(const ChunkGrid& grid) {
  const auto counts = grid.counts();
  return counts[0] * counts[1] * counts[2];
}

}  // namespace

std::vector<Layout> all_layouts(const Shape& shape) {
  std::vector<Layout> layouts{{kernels::TileShape::line, 0, 0}};
  std::vector<std::array<std::uint64_t, 3>> seen;
  const auto add = [&](const Layout& layout) {
    const auto extents = make_grid(shape, layout, DType::f32).extents;
    // A grid with an extent of 1 before the last axis is one of lower rank.
    if (extents[1] == 1 || (layout.tile == kernels::TileShape::block && extents[0] == 1)) return;
    if (std::find(seen.begin(), seen.end(), extents) != seen.end()) return;
    seen.push_back(extents);
    layouts.push_back(layout);
  };
  const auto rank = static_cast<std::uint8_t>(shape.rank());
  for (std::uint8_t k = 1; k < rank; ++k) add({kernels::TileShape::plane, 0, k});
  for (std::uint8_t j = 1; j < rank; ++j)
    for (std::uint8_t k = static_cast<std::uint8_t>(j + 1); k < rank; ++k) add({kernels::TileShape::block, j, k});
  return layouts;
}

Choice choose(const PlanRequest& request, const Layout* forced, const kernels::LorenzoKernels& kernels, void* scratch) {
  std::vector<Layout> layouts = forced != nullptr ? std::vector<Layout>{*forced} : all_layouts(request.shape);
  Choice best;
  if (request.sample.elems() == 0) {
    best = {layouts.front(), make_rules(request.dtype, request.bound, layouts.front())};
    best.rules.candidates[best.rules.candidate_count++] = Predictor::none;
    return best;
  }
  std::uint64_t best_cost = 0;
  std::uint64_t best_elems = 0;
  for (const Layout& layout : layouts) {
    // The first layout has the fewest chunks.
    if (best_elems != 0 && chunks_of(make_grid(request.shape, layout, request.dtype)) > request.max_chunks) continue;
    kernels::ChunkRules rules = make_rules(request.dtype, request.bound, layout);
    const Sampled sampled = sample(request, layout, rules, kernels, scratch);
    const std::uint64_t cost = choose_candidates(sampled, layout, rules);
    // cost / elems < best_cost / best_elems; both products stay far below 2^64.
    if (best_elems == 0 || cost * best_elems < best_cost * sampled.elems) {
      best = {layout, rules};
      best_cost = cost;
      best_elems = sampled.elems;
    }
  }
  return best;
}

}  // namespace quern::codec::lorenzo

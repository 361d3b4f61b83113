// Layout and candidate choice by integer estimates on sample tiles.
#include "codecs/lorenzo/plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include <quern/memory.h>

#include "libcompress/core/buffer.h"
#include "libcompress/core/run_tasks.h"
#include "libcompress/core/scattered_sample.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkBox;
using kernels::kPredictors;
using kernels::Predictor;

constexpr std::uint64_t kSampleTiles = 64;
constexpr std::size_t kTasksPerLayout = 4;

using TileCosts = std::array<std::uint32_t, kPredictors>;

/// Sample tiles of one layout and what they cost.
struct Trial {
  Layout layout;
  ChunkGrid grid;
  kernels::ChunkRules rules;
  Vector<ChunkBox> tiles;
  Vector<std::uint64_t> firsts;   ///< where each tile begins in the sample
  Vector<TileCosts> costs;        ///< estimated, of each predictor
  Vector<std::uint64_t> encoded;  ///< bytes under the candidates
  std::uint64_t elems = 0;
};

/// The leading part of a grid that a sample of `elems` elements covers wholly, as extents.
std::array<std::uint64_t, 3> covered(const std::array<std::uint64_t, 3>& extents, std::uint64_t elems) {
  const std::uint64_t plane = extents[1] * extents[2];
  if (elems >= plane) return {std::min(extents[0], elems / plane), extents[1], extents[2]};
  if (elems >= extents[2]) return {1, elems / extents[2], extents[2]};
  return {1, 1, elems};
}

/// A layout with its tiles: one from each of equal parts of the sample, each at another place in its part.
Trial make_trial(const PlanRequest& request, const Layout& layout) {
  Trial trial{layout,
              make_grid(request.shape, layout, request.dtype),
              make_rules(request.dtype, request.bound, layout),
              {},
              {},
              {},
              {},
              0};
  const auto extents = covered(trial.grid.extents, request.sample->elems());
  const auto size = kernels::tile_extents(layout.tile);
  std::array<std::uint64_t, 3> counts{};
  for (std::size_t a = 0; a < 3; ++a) counts[a] = (extents[a] + size[a] - 1) / size[a];
  const std::uint64_t total = counts[0] * counts[1] * counts[2];
  const std::uint64_t wanted = std::min(total, kSampleTiles);
  for (std::uint64_t i = 0; i < wanted; ++i) {
    const std::uint64_t index = scattered_sample(total, wanted, i);
    const std::array<std::uint64_t, 3> at{index / (counts[1] * counts[2]) * size[0],
                                          index / counts[2] % counts[1] * size[1], index % counts[2] * size[2]};
    ChunkBox box;
    for (std::size_t a = 0; a < 3; ++a) box.extents[a] = std::min<std::uint64_t>(size[a], extents[a] - at[a]);
    box.strides = {trial.grid.extents[1] * trial.grid.extents[2], trial.grid.extents[2]};
    trial.tiles.push_back(box);
    trial.firsts.push_back(at[0] * box.strides[0] + at[1] * box.strides[1] + at[2]);
    trial.elems += box.extents[0] * box.extents[1] * box.extents[2];
  }
  trial.costs.resize(trial.tiles.size());
  trial.encoded.resize(trial.tiles.size());
  return trial;
}

/// Calls visit(trial, t, tile, box, scratch) for every tile of every trial, special values replaced, on the runner.
template <class Visit>
Status for_tiles(const PlanRequest& request, const kernels::LorenzoKernels& kernels, Vector<Trial>& trials,
                 const Visit& visit) {
  return run_tasks(*request.runner, trials.size() * kTasksPerLayout, [&](std::size_t i) -> Status {
    Trial& trial = trials[i / kTasksPerLayout];
    AlignedBuffer scratch;
    QUERN_RETURN_IF_ERROR(scratch.resize(kernels.encode_scratch_bytes));
    alignas(64) std::uint8_t room[kernels::kTileElems * sizeof(std::uint64_t)];
    for (std::size_t t = i % kTasksPerLayout; t < trial.tiles.size(); t += kTasksPerLayout) {
      ChunkBox box = trial.tiles[t];
      QUERN_ASSIGN_OR_RETURN(const ConstBox3 clean,
                             request.sample->look(trial.firsts[t], {nullptr, box.extents, box.strides}, room, nullptr));
      box.strides = clean.strides;
      visit(trial, t, clean.data, box, scratch.data());
    }
    return {};
  });
}

/// What each predictor costs on each tile, estimated.
Status estimate_predictors(const PlanRequest& request, const kernels::LorenzoKernels& kernels, Vector<Trial>& trials) {
  return for_tiles(request, kernels, trials,
                   [&](Trial& trial, std::size_t t, const void* tile, const ChunkBox& box, void* scratch) {
                     std::uint32_t bytes[kPredictors];
                     kernels.estimate(trial.rules, tile, box, bytes, scratch);
                     std::copy(std::begin(bytes), std::end(bytes), trial.costs[t].begin());
                   });
}

/// What each tile costs under the chosen candidates: encoded alone, as a chunk.
Status measure_layouts(const PlanRequest& request, const kernels::LorenzoKernels& kernels, Vector<Trial>& trials) {
  constexpr std::size_t kMostBytes = kernels::max_lorenzo_chunk_bytes(kernels::Element::f64, 1);
  return for_tiles(request, kernels, trials,
                   [&](Trial& trial, std::size_t t, const void* tile, const ChunkBox& box, void* scratch) {
                     std::uint8_t bytes[kMostBytes];
                     trial.encoded[t] = kernels.encode(trial.rules, tile, box, bytes, scratch);
                   });
}

/// Greedy set of candidates.
void choose_candidates(Trial& trial) {
  kernels::ChunkRules& rules = trial.rules;
  Vector<std::uint32_t> best(trial.costs.size(), UINT32_MAX);
  std::uint64_t best_sum = UINT64_MAX;
  rules.candidate_count = 0;
  while (rules.candidate_count < kernels::kMaxCandidates) {
    std::uint64_t sum = UINT64_MAX;
    unsigned chosen = 0;
    for (unsigned p = 0; p < kPredictors; ++p) {
      if (!kernels::predictor_fits(static_cast<Predictor>(p), trial.layout.tile)) continue;
      std::uint64_t with = 0;
      for (std::size_t t = 0; t < best.size(); ++t) with += std::min(best[t], trial.costs[t][p]);
      if (with < sum) {
        sum = with;
        chosen = p;
      }
    }
    if (rules.candidate_count > 0 && sum + sum / 128 >= best_sum) break;
    rules.candidates[rules.candidate_count++] = static_cast<Predictor>(chosen);
    for (std::size_t t = 0; t < best.size(); ++t) best[t] = std::min(best[t], trial.costs[t][chosen]);
    best_sum = sum;
  }
}

std::uint64_t chunks_of(const ChunkGrid& grid) {
  const auto counts = grid.counts();
  return counts[0] * counts[1] * counts[2];
}

}  // namespace

Vector<Layout> all_layouts(const Shape& shape) {
  Vector<Layout> layouts{{kernels::TileShape::line, 0, 0}};
  Vector<std::array<std::uint64_t, 3>> seen;
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

Result<Choice> choose(const PlanRequest& request, const Layout* forced, const kernels::LorenzoKernels& kernels) {
  const Vector<Layout> layouts = forced != nullptr ? Vector<Layout>{*forced} : all_layouts(request.shape);
  if (request.sample->elems() == 0) {
    Choice choice{layouts.front(), make_rules(request.dtype, request.bound, layouts.front())};
    choice.rules.candidates[choice.rules.candidate_count++] = Predictor::none;
    return choice;
  }
  Vector<Trial> trials;
  for (const Layout& layout : layouts) {
    // The first layout has the fewest chunks.
    if (trials.empty() || chunks_of(make_grid(request.shape, layout, request.dtype)) <= request.max_chunks)
      trials.push_back(make_trial(request, layout));
  }
  QUERN_RETURN_IF_ERROR(estimate_predictors(request, kernels, trials));
  for (Trial& trial : trials) choose_candidates(trial);
  if (trials.size() > 1) QUERN_RETURN_IF_ERROR(measure_layouts(request, kernels, trials));
  const Trial* best = &trials.front();
  const auto cost_of = [](const Trial& trial) {
    return std::accumulate(trial.encoded.begin(), trial.encoded.end(), std::uint64_t{0});
  };
  for (const Trial& trial : trials) {
    // cost / elems < best cost / elems; both products stay far below 2^64.
    if (cost_of(trial) * best->elems < cost_of(*best) * trial.elems) best = &trial;
  }
  return Choice{best->layout, best->rules};
}

}  // namespace quern::codec::lorenzo

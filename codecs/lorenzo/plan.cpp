// Layout and candidate choice by integer estimates on sample tiles.
#include "codecs/lorenzo/plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>

#include <quern/memory.h>

#include "codecs/lorenzo/choose.h"
#include "libcompress/core/buffer.h"
#include "libcompress/core/run_tasks.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkBox;
using kernels::ChunkRules;
using kernels::kPredictors;
using kernels::Predictor;

constexpr std::size_t kTasksPerLayout = 4;

/// Sample tiles of one layout and what they cost.
struct Trial {
  Layout layout;
  ChunkGrid grid;
  ChunkRules rules;
  SampleTiles tiles;
  Vector<TileCosts> costs;        ///< estimated, of each predictor
  Vector<std::uint64_t> encoded;  ///< bytes under the candidates
};

Trial make_trial(const PlanRequest& request, const Layout& layout) {
  Trial trial;
  trial.layout = layout;
  trial.grid = make_grid(request.shape, layout, request.dtype);
  trial.rules = make_rules(request.dtype, request.bound, layout);
  trial.tiles = SampleTiles(trial.grid, layout.tile, request.sample->elems());
  trial.costs.resize(trial.tiles.size());
  trial.encoded.resize(trial.tiles.size());
  return trial;
}

/// Calls visit(trial, t, tile, box, scratch) for every tile of every trial, special values replaced, on the runner.
template <class Visit>
Status for_tiles(const PlanRequest& request, const kernels::LorenzoKernels& kernels, std::span<Trial> trials,
                 const Visit& visit) {
  return run_tasks(*request.runner, trials.size() * kTasksPerLayout, [&](std::size_t i) -> Status {
    Trial& trial = trials[i / kTasksPerLayout];
    AlignedBuffer scratch;
    QUERN_RETURN_IF_ERROR(scratch.resize(kernels.encode_scratch_bytes));
    alignas(64) std::uint8_t room[kernels::kTileElems * sizeof(std::uint64_t)];
    for (std::size_t t = i % kTasksPerLayout; t < trial.tiles.size(); t += kTasksPerLayout) {
      auto [box, first] = trial.tiles[t];
      QUERN_ASSIGN_OR_RETURN(const ConstBox3 clean,
                             request.sample->look(first, {nullptr, box.extents, box.strides}, room, nullptr));
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

/// Adds at most kLanes elements; those of a run without exceptions need no second look.
void add_run(const StepLook& look, const std::uint8_t* in, std::uint64_t count, StepSample& sample) {
  std::uint32_t bits[kernels::kLanes] = {};
  std::memcpy(bits, in, count * sizeof bits[0]);
  std::uint32_t refused = 0;
  std::int32_t peak = 0;
  for (const std::uint32_t element : bits) {
    refused |= look.accepts(element) ? 0u : 1u;
    peak = std::max(peak, static_cast<std::int32_t>(element & 0x7fffffff));
  }
  if (refused == 0) {
    add_sample(sample, {static_cast<std::uint32_t>(count), 0, static_cast<std::uint32_t>(peak)});
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) look.add(bits[i], sample);
}

/// What a tile of binary32 elements says of the step.
StepSample look_at(const ChunkRules& rules, const void* tile, const ChunkBox& box) {
  const StepLook look(rules.params);
  const auto* const first = static_cast<const std::uint8_t*>(tile);
  StepSample sample;
  for (std::uint64_t z = 0; z < box.extents[0]; ++z)
    for (std::uint64_t y = 0; y < box.extents[1]; ++y)
      for (std::uint64_t x = 0; x < box.extents[2]; x += kernels::kLanes)
        add_run(look, first + (z * box.strides[0] + y * box.strides[1] + x) * sizeof(float),
                std::min<std::uint64_t>(kernels::kLanes, box.extents[2] - x), sample);
  return sample;
}

/// Chooses the step of the trial's rules by its tiles.
Status choose_step(const PlanRequest& request, const kernels::LorenzoKernels& kernels, Trial& trial) {
  std::array<StepSample, kSampleTiles> samples;
  QUERN_RETURN_IF_ERROR(for_tiles(request, kernels, {&trial, 1},
                                  [&](Trial&, std::size_t t, const void* tile, const ChunkBox& box, void*) {
                                    samples[t] = look_at(trial.rules, tile, box);
                                  }));
  StepSample all;
  for (const StepSample& sample : samples) add_sample(all, sample);
  choose_step(all, trial.rules.params);
  return {};
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
  for (Trial& trial : trials) choose_candidates(trial.costs, trial.rules);
  if (trials.size() > 1) QUERN_RETURN_IF_ERROR(measure_layouts(request, kernels, trials));
  const auto cost_of = [](const Trial& trial) {
    return LayoutCost{std::accumulate(trial.encoded.begin(), trial.encoded.end(), std::uint64_t{0}),
                      trial.tiles.elems()};
  };
  Trial* best = &trials.front();
  for (Trial& trial : trials)
    if (is_cheaper(cost_of(trial), cost_of(*best))) best = &trial;
  // Prequantized elements are multiples of the step that type and bound give, and keep it.
  if (wants_step(best->rules) && !request.prequantized) QUERN_RETURN_IF_ERROR(choose_step(request, kernels, *best));
  return Choice{best->layout, best->rules};
}

}  // namespace quern::codec::lorenzo

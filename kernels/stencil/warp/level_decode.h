// A chunk in levels, decoded by the warps of a CTA. A class of points (in one plane, if planes come one after another)
// is a sweep: its points are predicted and their contexts summed up from points that are known, its residuals are
// taken, its values follow, and the halos of its rows. One warp takes residuals, block after block of rows; the
// others do all the rest meanwhile, for blocks that are taken and for rows of the next sweep whose neighbours are
// complete.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/entropy/warp/residual_stream.h"
#include "kernels/stencil/level_job.h"
#include "kernels/stencil/warp/level_grid.h"
#include "kernels/stencil/warp/level_patch.h"
#include "kernels/stencil/warp/level_predict.h"
#include "kernels/stencil/warp/level_steps.h"
#include "kernels/stencil/warp/level_symbols.h"

namespace quern::kernels {

inline constexpr std::uint32_t kMostLevelWarps = 16;

/// What the warps of a chunk share.
struct LevelMemory {
  SlotBuckets buckets;
  StreamWords words;
  LevelNear near;
  LevelBlocks blocks;
  LevelPlaces places[kMostLevelWarps];
  LevelStep steps[2];
  bool damaged;  ///< lanes did not end where they should
};
/// What devices of all kinds have, less what the runtime takes.
static_assert(sizeof(LevelMemory) <= 99 * 1024 - 1024);

/// All sweeps of a level.
template <class X, class Block>
constexpr void decode_level(Block& block, const JobTask& task, const LevelGridView& grid, ResidualStream<X>& stream,
                            LevelMemory& memory) {
  const auto put = [&](std::uint32_t at, const LevelStep& step) {
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(&memory.steps[at], lane, step);
    });
  };
  block.first([&] { put(0, LevelSteps(task, grid).begin()); });
  for (std::uint32_t at = 0; !memory.steps[at].done; at ^= 1) {
    const LevelStep& step = memory.steps[at];
    LevelBlocks& blocks = memory.blocks;
    block.first_and_others(
        [&] {
          LevelTaker<X>(step.now, memory.near)
              .run(blocks.points[step.turn ^ 1], blocks.residuals[step.turn ^ 1], step.take.windows(), stream);
        },
        [&](std::uint32_t warp, std::uint32_t warps) {
          // Patches stay with their warps, however they come in pieces.
          for (std::uint32_t p = step.predict_begin + (warp + warps - step.predict_begin % warps) % warps;
               p < step.predict_end; p += warps)
            LevelPredictor<X>(task, grid, step.ahead, memory.places[warp]).run(step.ahead_patches.patch(p));
          // Those without one do the rest.
          const std::uint32_t patches = step.predict_end - step.predict_begin;
          const std::uint32_t place = (warp + warps - step.predict_end % warps) % warps;
          const std::uint32_t places = patches < warps ? warps - patches : warps;
          if (place >= places) return;
          if (place == 0) put(at ^ 1, LevelSteps(task, grid).after(step));
          const LevelPoints<X> points(task, grid, step.now);
          const std::uint32_t staged = step.stage.windows();
          for (std::uint32_t w = places - 1 - place; w < staged; w += places)
            points.stage(step.stage.window(w), blocks.points[step.turn][w]);
          const std::uint32_t set = step.set.windows();
          for (std::uint32_t w = places - 1 - place; w < set; w += places)
            points.set(step.set.window(w), blocks.residuals[step.turn][w]);
          finish_level_rows<X>(grid, step.now.parity_class, step.now.first_row + step.finish_row, step.finish_rows,
                               place, places);
        });
  }
}

/// Decodes a chunk and returns whether its lanes ended where they should. A block is the warps of a
/// CTA, 2 to kMostLevelWarps of them: all(f) calls f(warp, warps) in each of them, first(f) calls f in the first one,
/// first_and_others(f, g) f in the first one and g(warp, warps) in the others, counted without it. They are over for
/// all of them before any returns.
template <class X, class Block>
constexpr bool decode_level_chunk(Block& block, const JobTask& task, LevelMemory& memory) {
  const auto& job = *reinterpret_cast<const LevelJob*>(task.job);
  const auto* const starts = LevelGridView::table<StreamStarts>(task, job.starts);
  block.all(
      [&](std::uint32_t warp, std::uint32_t warps) { fill_slot_buckets<X>(job, starts, warp, warps, memory.buckets); });
  ResidualStream<X> stream(memory.buckets, memory.words);
  block.first([&] {
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(&memory.damaged, lane, false);
    });
    LevelTaker<X>::clear(memory.near);
  });
  for (std::uint32_t level = job.top + 1u; level-- > 0;) {
    const LevelGridView grid(task, level);
    const LevelStage& stage = *grid.stage;
    if (stage.opens_section) {
      const StreamSection& section = LevelGridView::table<StreamSection>(task, job.sections)[stage.section];
      block.first([&] { stream.open(section, LevelGridView::table<std::uint8_t>(task, job.words)); });
    }
    if (level < job.top) {
      const LevelGridView above(task, level + 1);
      block.all([&](std::uint32_t warp, std::uint32_t warps) { take_level_above<X>(grid, above, warp, warps); });
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        finish_level_rows<X>(grid, 0, 0, stage.views[0].rows, warp, warps);
      });
    }
    decode_level<X>(block, task, grid, stream, memory);
    if (stage.ends_section) {
      block.first([&] {
        const bool finished = stream.finished();
        X::lanes([&](std::size_t lane) {
          if (lane == 0 && !finished) X::store(&memory.damaged, lane, true);
        });
      });
    }
  }
  block.all([&](std::uint32_t warp, std::uint32_t warps) { store_level_elements<X>(task, warp, warps); });
  block.all([&](std::uint32_t warp, std::uint32_t warps) { store_level_exceptions<X>(task, warp, warps); });
  return !memory.damaged;
}

}  // namespace quern::kernels

// Chunks of boxes, estimated.
#include "codecs/stencil/plan/trial.h"

#include <algorithm>
#include <array>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/effort.h"
#include "codecs/stencil/plan/plan.h"
#include "kernels/entropy/token_distribution.h"
#include "libcompress/core/run_tasks.h"

namespace quern::codec::stencil {
namespace {

// Where codes are large, fits of whole chunks gain more over those of trials in raster order than in levels. Levels
// must take no more than so much of what raster order does, but under goal speed, where fits are as brief as trials.
constexpr std::uint64_t kDenseLevelsPercent = 96;

/// Estimated bits, in units of 2^-12, of telling which elements are special, each from six neighbours: a mask costs
/// more where a layout tears apart what belongs together.
std::uint64_t mask_cost(const ConstBox3& box) {
  if (box.special == nullptr) return 0;
  std::array<std::array<std::uint32_t, 2>, 64> counts{};
  const auto plane = static_cast<std::ptrdiff_t>(box.special_strides[0]);
  const auto row = static_cast<std::ptrdiff_t>(box.special_strides[1]);
  for (std::uint64_t i = 0; i < box.extents[0]; ++i) {
    for (std::uint64_t j = 0; j < box.extents[1]; ++j) {
      const std::uint8_t* const at = box.special + i * box.special_strides[0] + j * box.special_strides[1];
      for (std::uint64_t x = 0; x < box.extents[2]; ++x) {
        const bool left = x > 0;
        const bool right = x + 1 < box.extents[2];
        const std::array<bool, 6> neighbours{left && at[x - 1] != 0,
                                             j > 0 && (at + x)[-row] != 0,
                                             j > 0 && left && (at + x)[-row - 1] != 0,
                                             j > 0 && right && (at + x)[-row + 1] != 0,
                                             i > 0 && (at + x)[-plane] != 0,
                                             i > 0 && right && (at + x)[-plane + 1] != 0};
        std::size_t context = 0;
        for (const bool n : neighbours) context = 2 * context + static_cast<std::size_t>(n);
        ++counts[context][at[x] != 0 ? 1 : 0];
      }
    }
  }
  std::uint64_t cost = 0;
  for (const auto& [no, yes] : counts) {
    if (no == 0 || yes == 0) continue;
    const std::uint64_t log = kernels::log2_fixed(no + yes);
    cost += no * (log - kernels::log2_fixed(no)) + yes * (log - kernels::log2_fixed(yes));
  }
  return cost;
}

/// Bits that the smaller errors of the transform are worth: under the same bound its PSNR is 6 dB higher, or more where
/// few bits are enough. Found by measurement.
std::uint64_t psnr_gain(const Trial& trial) {
  return std::min(trial.bits * 5 / 8, trial.elems * 1800 + trial.bits * 9 / 64);
}

/// Codes the first chunk of the trial array, or only estimates its size. `most_plain`: bits an element by order-0
/// entropy, in units of 2^-12, from where on contexts are not worth their time.
Status run_trial(const Stage& stage, std::uint64_t most_plain, Trial& trial) {
  const PlanRequest& request = stage.request;
  const bool quick_estimate = stage.quick_estimate;
  const ChunkGrid grid = make_grid(stage.array.shape, trial.layout);
  const ConstBox3 box = stage.array.first_chunk(grid);
  trial.elems = box.elems();
  EncodeSpec spec{{request.dtype, grid.chunk, &stage.kernels, levels_form(stage.array.shape, trial.layout, grid)}, {}};
  spec.bound = request.bound.value;
  spec.for_psnr = wants_psnr(request);
  spec.parts = stage.parts;
  spec.effort = std::max(effort_of(request), Effort::medium);
  spec.quick_estimate = quick_estimate;
  if (most_plain != UINT64_MAX) spec.most_plain = most_plain * trial.elems;
  spec.transform = trial.transform;
  spec.prequantized = codes_elements(request);
  QUERN_ASSIGN_OR_RETURN(auto memory, stage.scratch.lend(encode_scratch_bytes(spec)));
  QUERN_ASSIGN_OR_RETURN(const ChunkCost cost, estimate_chunk(spec, box, memory.span()));
  // What a model takes is shared by all of a full chunk.
  const auto& chunk = make_grid(request.shape, trial.layout).chunk;
  const std::uint64_t chunk_elems = chunk[0] * chunk[1] * chunk[2];
  trial.bits = cost.residuals + cost.model * trial.elems / std::max(chunk_elems, trial.elems);
  trial.plain = cost.plain;
  // What is tried as a whole finds its own.
  if (request.shape.elems() > kWholeElems) trial.transform = cost.transform;
  const std::uint64_t mask = mask_cost(box);
  if (!quick_estimate && trial.layout.wavelet && wants_psnr(request)) trial.bits -= psnr_gain(trial);
  trial.bits += mask;
  trial.plain += mask;
  if (!quick_estimate && trial.dense && !wants_speed(request)) trial.bits = trial.bits * 100 / kDenseLevelsPercent;
  return {};
}

}  // namespace

std::size_t best_of(const Vector<Trial>& trials) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < trials.size(); ++i)
    if (cheaper(trials[i], trials[best])) best = i;
  return best;
}

Status Stage::run(Vector<Trial>& trials, std::size_t first, std::uint64_t most_plain) const {
  return run_tasks(*request.runner, trials.size() - first,
                   [&](std::size_t i) { return run_trial(*this, most_plain, trials[first + i]); });
}

}  // namespace quern::codec::stencil

// Trials of all layouts.
#include "codecs/stencil/plan.h"

#include <algorithm>

#include "codecs/stencil/chunk.h"
#include "kernels/core/residual_model.h"
#include "libcompress/core/buffer.h"
#include "libcompress/core/run_tasks.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint64_t kSlabElems = UINT64_C(1) << 19;
constexpr std::uint64_t kSlabPlanes = 8;
constexpr std::uint64_t kManyElems = UINT64_C(1) << 22;  // of a larger array the slab has more planes, and
constexpr std::uint64_t kManyPlanes = 32;                // layouts are tried on a box of it alone
constexpr std::uint64_t kBoxElems = UINT64_C(1) << 18;
constexpr std::uint64_t kMostPlanes = 48;  // a longer first axis is better off coarse to fine, or in raster order
constexpr std::uint64_t kShortRow = 8;     // rows this short are mostly margins
// Bits an element, in units of 2^-12.
constexpr std::uint64_t kDenseBits = 7 << 11;    // in raster order, from where on levels lose
constexpr std::uint64_t kWaveletBits = 2 << 12;  // from here on the transform does not pay
constexpr std::uint64_t kWaveletBitsForPsnr = 3 << 12;

struct Trial {
  Layout layout;
  std::uint64_t elems = 0;
  std::uint64_t bits = 0;  ///< in units of 2^-12
};

bool wants_psnr(const PlanRequest& request) { return request.goal == "psnr"; }

/// Elements [first, first + elems) in C order, from the middle of the sample: whole planes of the array's first axis,
/// so that every layout is tried on the same ones.
struct Slab {
  std::uint64_t first = 0;
  std::uint64_t elems = 0;

  Slab(const Shape& shape, std::uint64_t sample_elems) {
    std::uint64_t plane = 1;
    for (std::size_t axis = 1; axis < shape.rank(); ++axis) plane *= shape[axis];
    const std::uint64_t planes = sample_elems / plane;
    const std::uint64_t wanted = std::max(shape.elems() > kManyElems ? kManyPlanes : kSlabPlanes, kSlabElems / plane);
    const std::uint64_t taken = std::min(planes, wanted);
    first = (planes - taken) / 2 * plane;
    elems = taken * plane;
  }
};

/// The part of a layout's grid that a slab is.
std::array<std::uint64_t, 3> slab_extents(const std::array<std::uint64_t, 3>& grid, std::uint64_t elems) {
  const std::uint64_t plane = grid[1] * grid[2];
  if (elems >= plane) return {elems / plane, grid[1], grid[2]};
  if (elems >= grid[2]) return {1, elems / grid[2], grid[2]};
  return {1, 1, elems};
}

/// The box of a slab that a layout is tried on: no more than a chunk. Of a large array it lies in the slab's middle,
/// its longest axes halved until it is small.
struct TrialBox {
  std::array<std::uint64_t, 3> extents;
  std::uint64_t first = 0;  ///< element, from the slab's first

  TrialBox(const ChunkGrid& grid, const std::array<std::uint64_t, 3>& slab, std::uint64_t array_elems) : extents(slab) {
    for (std::size_t a = 0; a < 3; ++a) extents[a] = std::min(slab[a], grid.chunk[a]);
    if (array_elems <= kManyElems) return;
    while (extents[0] * extents[1] * extents[2] > kBoxElems) {
      auto& longest = *std::max_element(extents.begin(), extents.end());
      longest = (longest + 1) / 2;
    }
    for (std::size_t a = 0; a < 3; ++a) first = first * grid.extents[a] + (slab[a] - extents[a]) / 2;
  }
};

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

/// Bits that the smaller errors of the transform are worth: under the same bound its PSNR is some 4 dB higher, and what
/// 4 dB cost grows with the rate. Found by measurement.
std::uint64_t psnr_gain(const Trial& trial) {
  return std::min(trial.bits * 3 / 8, trial.elems * 700 + trial.bits * 9 / 64);
}

Status run_trial(const PlanRequest& request, const kernels::StencilKernels& kernels, const Slab& slab, Trial& trial) {
  const ChunkGrid grid = make_grid(request.shape, trial.layout);
  const TrialBox place(grid, slab_extents(grid.extents, slab.elems), request.shape.elems());
  const auto& extents = place.extents;
  const std::array<std::uint64_t, 2> strides{grid.extents[1] * grid.extents[2], grid.extents[2]};
  trial.elems = extents[0] * extents[1] * extents[2];
  const ChunkSpec spec{request.dtype,
                       extents,
                       request.bound.value,
                       &kernels,
                       levels_form(request.shape, trial.layout, {grid.extents, extents}),
                       wants_psnr(request)};
  AlignedBuffer room;
  AlignedBuffer special;
  AlignedBuffer scratch;
  QUERN_RETURN_IF_ERROR(room.resize(spec.raw_bytes()));
  QUERN_RETURN_IF_ERROR(special.resize(trial.elems));
  QUERN_RETURN_IF_ERROR(scratch.resize(encode_scratch_bytes(spec)));
  QUERN_ASSIGN_OR_RETURN(
      const ConstBox3 box,
      request.sample->look(slab.first + place.first, {nullptr, extents, strides}, room.data(), special.data()));
  QUERN_ASSIGN_OR_RETURN(trial.bits, estimate_chunk(spec, box, scratch.span()));
  if (trial.layout.wavelet && wants_psnr(request)) trial.bits -= psnr_gain(trial);
  trial.bits += mask_cost(box);
  return {};
}

}  // namespace

Vector<Layout> all_layouts(const Shape& shape) {
  Vector<Layout> layouts;
  Vector<std::array<std::uint64_t, 3>> seen;
  const auto rank = static_cast<std::uint8_t>(shape.rank());
  for (std::uint8_t first = 0; first <= rank; ++first) {
    for (std::uint8_t second = first; second <= rank; ++second) {
      const auto extents = make_grid(shape, {first, second}).extents;
      // An axis of extent 1 in front of a longer one says the same as without it.
      if (extents[2] == 1 && (extents[0] > 1 || extents[1] > 1)) continue;
      if (extents[1] == 1 && extents[0] > 1) continue;
      if (std::find(seen.begin(), seen.end(), extents) != seen.end()) continue;
      seen.push_back(extents);
      layouts.push_back({first, second});
    }
  }
  return layouts;
}

namespace {

/// Axes as they are; where there are more than four, the first ones merged. (Four are three of the grid, one split.)
Layout own_axes(const Shape& shape) {
  const std::size_t rank = shape.rank();
  return {static_cast<std::uint8_t>(rank < 3 ? 0 : rank - 2), static_cast<std::uint8_t>(rank < 2 ? 0 : rank - 1)};
}

/// Of the first axis of the grid that has one.
std::uint64_t first_extent(const Shape& shape, const Layout& layout) {
  for (const std::uint64_t extent : make_grid(shape, layout).extents)
    if (extent > 1) return extent;
  return 1;
}

bool possible(const PlanRequest& request, const Layout& layout) {
  const ChunkGrid grid = make_grid(request.shape, layout);
  const auto counts = grid.counts();
  if (counts[0] * counts[1] * counts[2] > request.max_chunks) return false;
  return grid.extents[2] >= kShortRow || request.shape.elems() <= kShortRow;
}

/// Runs trials from `first` on and returns the best of all; ties to the lower index.
Result<std::size_t> best_trial(const PlanRequest& request, const kernels::StencilKernels& kernels, const Slab& slab,
                               Vector<Trial>& trials, std::size_t first) {
  QUERN_RETURN_IF_ERROR(run_tasks(*request.runner, trials.size() - first,
                                  [&](std::size_t i) { return run_trial(request, kernels, slab, trials[first + i]); }));
  std::size_t best = 0;
  for (std::size_t i = 1; i < trials.size(); ++i)
    if (trials[i].bits * trials[best].elems < trials[best].bits * trials[i].elems) best = i;
  return best;
}

/// Tight coarse levels pay where few bits go to the finest: there it is the grid below that errors come from. For
/// the mean error they pay earlier. Limits in bits an element, found on real fields.
ChosenLayout chosen(const PlanRequest& request, const Trial& trial) {
  if (!trial.layout.levels || trial.elems == 0) return {trial.layout};
  const auto below = [&](std::uint64_t quarters) { return trial.bits < trial.elems * quarters << 10; };
  std::uint8_t tightening = 0;
  if (request.goal == "psnr") {
    tightening = below(4) ? 3 : below(10) ? 2 : 0;
  } else if (below(3)) {
    tightening = 1;
  }
  return {trial.layout, tightening};
}

}  // namespace

Result<ChosenLayout> choose_layout(const PlanRequest& request, const LayoutChoice& choice,
                                   const kernels::StencilKernels& kernels) {
  Vector<Trial> trials;
  if (choice.raster) {
    for (const Layout& layout : all_layouts(request.shape))
      if (!choice.axes && possible(request, layout)) trials.push_back({layout});
    if (choice.axes) trials.push_back({{choice.axes->first, choice.axes->second}});
    if (trials.empty()) trials.push_back({});
  }
  const bool raster_only = !choice.levels && !choice.planes && !choice.wavelet;
  if (raster_only && trials.size() == 1) return ChosenLayout{trials[0].layout};
  const Slab slab(request.shape, request.sample->elems());
  std::size_t best = 0;
  if (slab.elems > 0 && trials.size() > 0) {
    QUERN_ASSIGN_OR_RETURN(best, best_trial(request, kernels, slab, trials, 0));
  }
  if (raster_only) return ChosenLayout{trials[best].layout};
  if (trials.size() > 0 && trials[best].bits > kDenseBits * trials[best].elems)
    return ChosenLayout{trials[best].layout};
  // In levels only the axes as they are, and as raster order likes them best.
  const std::size_t rasters = trials.size();
  const Layout own = own_axes(request.shape);
  const auto add = [&](Layout layout) {
    layout.levels = true;
    if (choice.levels) trials.push_back({layout});
    layout.sequential = true;
    if (choice.planes && (!choice.raster || first_extent(request.shape, layout) <= kMostPlanes))
      trials.push_back({layout});
  };
  if (choice.axes) {
    add(*choice.axes);
  } else {
    if (rasters == 0 || possible(request, own)) add(own);
    if (rasters > 0 && !(trials[best].layout == own)) add(trials[best].layout);
  }
  const auto add_wavelet = [&] {
    Layout layout = choice.axes ? Layout{choice.axes->first, choice.axes->second} : own;
    layout.wavelet = true;
    trials.push_back({layout});
  };
  if (trials.empty()) add_wavelet();
  if (slab.elems == 0) return ChosenLayout{trials[0].layout};
  QUERN_ASSIGN_OR_RETURN(best, best_trial(request, kernels, slab, trials, rasters));
  // The transform pays where few bits an element are enough.
  const std::uint64_t most = wants_psnr(request) ? kWaveletBitsForPsnr : kWaveletBits;
  if (!choice.wavelet || trials[best].layout.wavelet || trials[best].bits > trials[best].elems * most)
    return chosen(request, trials[best]);
  const std::size_t others = trials.size();
  add_wavelet();
  QUERN_ASSIGN_OR_RETURN(best, best_trial(request, kernels, slab, trials, others));
  return chosen(request, trials[best]);
}

}  // namespace quern::codec::stencil

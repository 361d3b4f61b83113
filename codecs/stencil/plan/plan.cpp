// Which layout: trials on boxes, small ones first.
#include "codecs/stencil/plan/plan.h"

#include <algorithm>

#include "codecs/stencil/effort.h"
#include "codecs/stencil/plan/measured_choice.h"
#include "codecs/stencil/plan/quick_estimates.h"
#include "codecs/stencil/plan/sample_block.h"
#include "codecs/stencil/plan/trial.h"
#include "libcompress/core/buffer.h"

namespace quern::codec::stencil {
namespace {

// Every layout that may be is tried on a small box; those that come near the best are tried again on a larger one.
constexpr std::uint64_t kFirstElems = UINT64_C(1) << 14;
constexpr std::uint64_t kSecondElems = UINT64_C(1) << 16;
// Small boxes make levels dear, as more of their points lie at a border. Where something else won on one, but took no
// less than so many hundredths of what levels took, both are tried again on a larger one, if the array is large.
constexpr std::uint64_t kThirdElems = UINT64_C(1) << 17;
constexpr std::uint64_t kLargeElems = UINT64_C(1) << 22;
constexpr std::uint64_t kDoubtPercent = 75;
constexpr std::uint64_t kClosePercent = 95;  // where speed counts, levels are taken without that from here on
// The transform is taken where a trial takes no more than so much of what the others take.
constexpr std::uint64_t kWaveletPercent = 92;
// Before contexts a trial that is to win may take so many hundredths of what others take with theirs. Contexts seldom
// gain raster order more than a third; what they gain the transform, corrections take.
constexpr std::uint64_t kRasterPlainOfBits = 155;
constexpr std::uint64_t kWaveletPlainOfBits = 100;

}  // namespace

EncodeSpec encode_spec(const PlanRequest& request, const Way& way, FittedParts parts,
                       const kernels::StencilKernels& kernels) {
  const ChunkGrid grid = make_grid(request.shape, way.layout);
  EncodeSpec spec{{request.dtype, grid.chunk, &kernels, levels_form(request.shape, way.layout, grid)}, {}};
  spec.bound = request.bound.value;
  spec.for_psnr = wants_psnr(request);
  spec.prequantized = codes_elements(request);
  // No element of a coarse level of prequantized ones has an error to pass on.
  spec.tightening = spec.prequantized ? 0 : way.tightening;
  spec.parts = parts;
  spec.effort = effort_of(request);
  return spec;
}

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

Way way_of(const PlanRequest& request, const Trial& trial) {
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

namespace {

/// Whether a quick estimate leaves open how tight coarse levels are to be.
bool tightening_open(const PlanRequest& request, const Trial& estimated) {
  if (!estimated.layout.levels) return false;
  const auto above = [&](std::uint64_t quarters) { return estimated.bits >= estimated.elems * quarters << 10; };
  return request.goal == "psnr" ? !above(15) : above(2) && !above(5);
}

/// True when rows go on in the next and raster order gains much by merging axes, which boxes cannot show.
Result<bool> merging_pays(const PlanRequest& request, const LayoutChoice& choice,
                          const kernels::StencilKernels& kernels, BufferPool& scratch) {
  const std::uint64_t sampled = request.sample->elems();
  const Shape slab = slab_shape(request.shape, sampled, kFirstElems);
  const std::size_t rank = request.shape.rank();
  if (choice.axes || !choice.raster || rank < 2 || slab[rank - 1] < request.shape[rank - 1] ||
      slab == trial_shape(request.shape, sampled, kFirstElems))
    return false;
  QUERN_ASSIGN_OR_RETURN(const bool may_pay, rows_go_on(request));
  if (!may_pay) return false;
  Vector<Trial> trials{{own_axes(request.shape)}};
  for (const Layout& layout : all_layouts(request.shape))
    if (!(layout == trials[0].layout) && possible(request, layout)) trials.push_back({layout});
  QUERN_ASSIGN_OR_RETURN(const TrialArray array, take_trial_array(request, slab));
  QUERN_RETURN_IF_ERROR((Stage{request, kernels, array, choice.parts, scratch, true}.run(trials, 0)));
  return cheaper(trials[best_of(trials)], trials[0], 80);
}

/// The index of the best of complete trials, the transform's behind the others. It takes ten times as long, and a chunk
/// bears out less of its gain than a box does.
std::size_t best_for_chunks(const Stage& stage, const Vector<Trial>& trials) {
  const std::size_t best = best_of(trials);
  const bool whole = stage.request.shape.elems() <= kWholeElems;
  if (!trials[best].layout.wavelet || whole || wants_psnr(stage.request)) return best;
  const Vector<Trial> others(trials.begin(), trials.end() - 1);
  if (others.empty()) return best;
  const std::size_t other = best_of(others);
  return cheaper(trials[best], trials[other], kWaveletPercent) ? best : other;
}

/// Bits an element by order-0 entropy, in units of 2^-12, from where on a trial cannot come out best: `bits` hundredths
/// of what the best of those done takes with contexts, or `plain` of what it takes before them.
std::uint64_t plain_limit(const Vector<Trial>& done, std::uint64_t bits, std::uint64_t plain) {
  std::uint64_t limit = UINT64_MAX;
  for (const Trial& trial : done) {
    const std::uint64_t hundredths = 100 * std::max<std::uint64_t>(trial.elems, 1);
    if (bits > 0) limit = std::min(limit, trial.bits * bits / hundredths);
    if (plain > 0) limit = std::min(limit, trial.plain * plain / hundredths);
  }
  return limit;
}

/// Trials of the layouts that quick estimates left, the transform last: what is clearly worse than the best one before
/// it is given up early. So is raster order behind levels in small arrays and where speed counts; in large ones these
/// run side by side, as their chunks do.
Result<Vector<Trial>> run_trials(const Stage& stage, const Vector<Trial>& trials) {
  const bool race = stage.request.shape.elems() <= kLargeElems || wants_speed(stage.request);
  Vector<Trial> levels;
  Vector<Trial> others;
  Vector<Trial> transform;
  for (const Trial& trial : trials)
    (trial.layout.wavelet ? transform : race && trial.layout.levels ? levels : others).push_back(trial);
  QUERN_RETURN_IF_ERROR(stage.run(levels));
  QUERN_RETURN_IF_ERROR(stage.run(others, 0, plain_limit(levels, kRasterPlainOfBits, 0)));
  others.insert(others.end(), levels.begin(), levels.end());
  const bool psnr = wants_psnr(stage.request);
  QUERN_RETURN_IF_ERROR(
      stage.run(transform, 0, plain_limit(others, psnr ? 0 : kWaveletPlainOfBits, plain_percent(stage.request))));
  others.insert(others.end(), transform.begin(), transform.end());
  return others;
}

/// Of the layouts that quick estimates left the best one in raster order and the best one in levels.
Vector<Trial> best_of_each_kind(const Vector<Trial>& trials) {
  Vector<Trial> best;
  for (const bool levels : {false, true}) {
    Vector<Trial> like;
    for (const Trial& trial : trials)
      if (trial.layout.levels == levels) like.push_back(trial);
    if (!like.empty()) best.push_back(like[best_of(like)]);
  }
  return best;
}

/// Those of the first whose layouts the second have not.
Vector<Trial> untried(const Vector<Trial>& trials, const Vector<Trial>& tried) {
  Vector<Trial> rest;
  for (const Trial& trial : trials)
    if (std::none_of(tried.begin(), tried.end(), [&](const Trial& t) { return t.layout == trial.layout; }))
      rest.push_back(trial);
  return rest;
}

/// Of trials in raster order only those that come nearest to the best one on a box of that shape; all others.
Result<Vector<Trial>> with_best_raster(const Stage& first, const Shape& shape, const Vector<Trial>& trials) {
  constexpr std::uint64_t kNearPercent = 102;
  Vector<Trial> estimates;
  Vector<Trial> left;
  for (const Trial& trial : trials) (trial.layout.levels || trial.layout.wavelet ? left : estimates).push_back(trial);
  if (estimates.size() < 2) return trials;
  QUERN_ASSIGN_OR_RETURN(const TrialArray array, take_trial_array(first.request, shape));
  Vector<Trial> larger = estimates;
  QUERN_RETURN_IF_ERROR((Stage{first.request, first.kernels, array, first.parts, first.scratch}.run(larger)));
  const std::size_t best = best_of(larger);
  for (std::size_t i = 0; i < larger.size(); ++i)
    if (i == best || cheaper(larger[i], larger[best], kNearPercent)) left.push_back(estimates[i]);
  return left;
}

/// The winner of trials and the best one in levels, if the box may have been too small for them.
Vector<Trial> in_doubt(const PlanRequest& request, const Vector<Trial>& trials, std::size_t winner) {
  if (request.shape.elems() <= kLargeElems || trials[winner].layout.levels) return {};
  Vector<Trial> levels;
  for (const Trial& trial : trials)
    if (trial.layout.levels && !cheaper(trials[winner], trial, kDoubtPercent)) levels.push_back(trial);
  if (levels.empty()) return {};
  // The transform comes last.
  Vector<Trial> doubt{levels[best_of(levels)]};
  doubt.insert(trials[winner].layout.wavelet ? doubt.end() : doubt.begin(), trials[winner]);
  return doubt;
}

}  // namespace

Result<ChosenLayout> choose_layout(const PlanRequest& request, const LayoutChoice& choice,
                                   const kernels::StencilKernels& kernels) {
  const bool raster_only = !choice.levels && !choice.planes && !choice.wavelet;
  if (raster_only && choice.axes) return ChosenLayout{{Layout{choice.axes->first, choice.axes->second}}};
  BufferPool scratch;
  QUERN_ASSIGN_OR_RETURN(const bool merging, merging_pays(request, choice, kernels, scratch));
  const auto shape_of = merging ? slab_shape : trial_shape;
  const Shape first_shape = shape_of(request.shape, request.sample->elems(), kFirstElems);
  const std::uint64_t second_elems = request.shape.elems() <= kWholeElems ? kWholeElems : kSecondElems;
  const Shape second_shape = shape_of(request.shape, request.sample->elems(), second_elems);
  QUERN_ASSIGN_OR_RETURN(const TrialArray first_array, take_trial_array(request, first_shape));
  const Stage first{request, kernels, first_array, choice.parts, scratch, true};
  const Comparison comparison = comparison_of(request, choice);
  QuickEstimates estimates(request, choice, first, comparison != Comparison::boxes);
  QUERN_RETURN_IF_ERROR(estimates.run());
  if (comparison == Comparison::blocks) return choose_by_blocks(first, estimates.possible_winners(), merging);
  if (comparison == Comparison::whole) {
    QUERN_ASSIGN_OR_RETURN(const Vector<Trial> winners,
                           with_best_raster(first, second_shape, estimates.possible_winners()));
    return choose_by_encoding(first, winners, choice.brief);
  }
  const Vector<Trial> near = estimates.near_best();
  if (near.size() == 1 && (wants_speed(request) || !tightening_open(request, near[0])))
    return ChosenLayout{way_of(request, near[0])};
  QUERN_ASSIGN_OR_RETURN(const TrialArray second_array, take_trial_array(request, second_shape));
  const Stage second{request, kernels, second_array, choice.parts, scratch};
  // Large arrays are mostly best in levels; where they are, or nearly so, speed does without further trials.
  const bool least_effort = effort_of(request) == Effort::lowest;
  QUERN_ASSIGN_OR_RETURN(Vector<Trial> trials, run_trials(second, least_effort ? best_of_each_kind(near) : near));
  std::size_t winner = best_for_chunks(second, trials);
  for (const Trial& trial : trials)
    if (least_effort && trial.layout.levels && !cheaper(trials[winner], trial, kClosePercent))
      return ChosenLayout{way_of(request, trial)};
  if (trials.size() < near.size()) {
    QUERN_ASSIGN_OR_RETURN(const Vector<Trial> others, run_trials(second, untried(near, trials)));
    trials.insert(trials.end(), others.begin(), others.end());
    winner = best_for_chunks(second, trials);
  }
  const Vector<Trial> doubt = in_doubt(request, trials, winner);
  if (doubt.empty()) return ChosenLayout{way_of(request, trials[winner])};
  const Shape third_shape = shape_of(request.shape, request.sample->elems(), kThirdElems);
  QUERN_ASSIGN_OR_RETURN(const TrialArray third_array, take_trial_array(request, third_shape));
  const Stage third{request, kernels, third_array, choice.parts, scratch};
  QUERN_ASSIGN_OR_RETURN(const Vector<Trial> again, run_trials(third, doubt));
  return ChosenLayout{way_of(request, again[best_for_chunks(third, again)])};
}

}  // namespace quern::codec::stencil

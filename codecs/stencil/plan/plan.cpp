// Trials of all layouts.
#include "codecs/stencil/plan/plan.h"

#include <algorithm>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/effort.h"
#include "codecs/stencil/plan/sample_block.h"
#include "kernels/entropy/token_distribution.h"
#include "libcompress/core/buffer.h"
#include "libcompress/core/run_tasks.h"

namespace quern::codec::stencil {
namespace {

// Every layout that may be is tried on a small box; those that come near the best are tried again on a larger one.
constexpr std::uint64_t kFirstElems = UINT64_C(1) << 14;
constexpr std::uint64_t kSecondElems = UINT64_C(1) << 16;
constexpr std::uint64_t kWholeElems = UINT64_C(5) << 15;  // an array of no more is tried as a whole
// Small boxes make levels dear, as more of their points lie at a border. Where something else won on one, but took no
// less than so many hundredths of what levels took, both are tried again on a larger one, if the array is large.
constexpr std::uint64_t kThirdElems = UINT64_C(1) << 17;
constexpr std::uint64_t kLargeElems = UINT64_C(1) << 22;
constexpr std::uint64_t kDoubtPercent = 75;
constexpr std::uint64_t kClosePercent = 95;  // where speed counts, levels are taken without that from here on
constexpr std::uint64_t kMostPlanes = 48;    // a longer first axis is better off coarse to fine, or in raster order
constexpr std::uint64_t kShortRow = 8;       // rows this short are mostly margins
// Bits an element, in units of 2^-12. Small boxes take more than the array does.
constexpr std::uint64_t kDenseBits = 20 << 10;   // in raster order before contexts: from here on levels seldom win,
constexpr std::uint64_t kMostBits = 40 << 10;    // and from here on never
constexpr std::uint64_t kWaveletBits = 9 << 10;  // from here on the transform does not pay
constexpr std::uint64_t kWaveletBitsForPsnr = 24 << 10;
// The transform is taken where a trial takes no more than so much of what the others take.
constexpr std::uint64_t kWaveletPercent = 92;
// Where codes are large, fits of whole chunks gain more over those of trials in raster order than in levels. Levels
// must take no more than so much of what raster order does, but under goal speed, where fits are as brief as trials.
constexpr std::uint64_t kDenseLevelsPercent = 96;
// Contexts gain the transform less than other layouts: coefficients may take so much of what others take before them.
constexpr std::uint64_t kPlainPercent = 90;
constexpr std::uint64_t kPlainPercentForPsnr = 300;
// Before contexts a trial that is to win may take so many hundredths of what others take with theirs. Contexts seldom
// gain raster order more than a third; what they gain the transform, corrections take.
constexpr std::uint64_t kRasterPlainOfBits = 155;
constexpr std::uint64_t kWaveletPlainOfBits = 100;

struct Trial {
  Layout layout;
  std::uint64_t elems = 0;
  std::uint64_t bits = 0;                   ///< in units of 2^-12
  std::uint64_t plain = 0;                  ///< the same by order-0 entropy
  std::optional<std::uint8_t> transform{};  ///< that a quick estimate chose
  bool dense = false;                       ///< of levels where codes are large
};

bool wants_psnr(const PlanRequest& request) { return request.goal == "psnr"; }
bool wants_speed(const PlanRequest& request) { return request.goal == "speed"; }

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
Status run_trial(const PlanRequest& request, const kernels::StencilKernels& kernels, const TrialArray& array,
                 FittedParts parts, bool quick_estimate, std::uint64_t most_plain, BufferPool& scratch, Trial& trial) {
  const ChunkGrid grid = make_grid(array.shape, trial.layout);
  const ConstBox3 box = array.first_chunk(grid);
  trial.elems = box.elems();
  EncodeSpec spec{{request.dtype, grid.chunk, &kernels, levels_form(array.shape, trial.layout, grid)}, {}};
  spec.bound = request.bound.value;
  spec.for_psnr = wants_psnr(request);
  spec.parts = parts;
  spec.effort = std::max(effort_of(request), Effort::medium);
  spec.quick_estimate = quick_estimate;
  if (most_plain != UINT64_MAX) spec.most_plain = most_plain * trial.elems;
  spec.transform = trial.transform;
  spec.prequantized = codes_elements(request);
  QUERN_ASSIGN_OR_RETURN(auto memory, scratch.lend(encode_scratch_bytes(spec)));
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

std::uint64_t plain_percent(const PlanRequest& request) {
  return wants_psnr(request) ? kPlainPercentForPsnr : kPlainPercent;
}

/// True when trial `a` takes fewer bits an element than `percent` hundredths of what trial `b` takes.
bool cheaper(const Trial& a, const Trial& b, std::uint64_t percent = 100) {
  return 100 * a.bits * b.elems < percent * b.bits * a.elems;
}

/// What all trials of one stage share.
struct Stage {
  const PlanRequest& request;
  const kernels::StencilKernels& kernels;
  const TrialArray& array;
  FittedParts parts;
  BufferPool& scratch;
  bool quick_estimate = false;

  /// Runs trials from `first` on, side by side.
  Status run(Vector<Trial>& trials, std::size_t first = 0, std::uint64_t most_plain = UINT64_MAX) const {
    return run_tasks(*request.runner, trials.size() - first, [&](std::size_t i) {
      return run_trial(request, kernels, array, parts, quick_estimate, most_plain, scratch, trials[first + i]);
    });
  }
};

/// The index of the trial of fewest bits; ties to the lower index.
std::size_t best_of(const Vector<Trial>& trials) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < trials.size(); ++i)
    if (cheaper(trials[i], trials[best])) best = i;
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

/// Whether a quick estimate leaves open how tight coarse levels are to be.
bool tightening_open(const PlanRequest& request, const Trial& estimated) {
  if (!estimated.layout.levels) return false;
  const auto above = [&](std::uint64_t quarters) { return estimated.bits >= estimated.elems * quarters << 10; };
  return request.goal == "psnr" ? !above(15) : above(2) && !above(5);
}

/// Estimates every possible layout on a small box, and says which of them are worth a trial.
class QuickEstimates {
 public:
  QuickEstimates(const PlanRequest& request, const LayoutChoice& choice, const Stage& stage)
      : request_(request), choice_(choice), stage_(stage), own_(own_axes(request.shape)) {}

  Status run() {
    if (choice_.raster) add_raster();
    QUERN_RETURN_IF_ERROR(run_new());
    if (!choice_.levels && !choice_.planes && !choice_.wavelet) return {};
    const bool dense = !trials_.empty() && bits_above(kDenseBits);
    if (dense && (bits_above(kMostBits) || !boxes_show_levels())) return {};
    add_levels();
    for (Trial& trial : trials_) trial.dense = dense && trial.layout.levels;
    // The transform pays where few bits an element are enough.
    const std::uint64_t most = wants_psnr(request_) ? kWaveletBitsForPsnr : kWaveletBits;
    const bool slow = wants_speed(request_) && !trials_.empty();
    if (choice_.wavelet && !slow && (trials_.empty() || !bits_above(most))) {
      Layout layout = choice_.axes ? Layout{choice_.axes->first, choice_.axes->second} : own_;
      layout.wavelet = true;
      trials_.push_back({layout});
    }
    return run_new();
  }

  const Trial& best() const { return trials_[best_of(trials_)]; }
  /// The best one, and those that contexts may make better than it.
  Vector<Trial> near_best() const {
    Vector<Trial> near;
    const bool all = request_.shape.elems() <= kNoQuickEstimate;
    for (const Trial& trial : trials_)
      if (all || may_be_best(trial)) near.push_back(trial);
    return near;
  }

 private:
  // Hundredths of the bits that others take. How much contexts gain differs between layouts, most between raster order
  // and levels; the transform always gains less. Found on real fields.
  static constexpr std::uint64_t kLikeMargin = 115;    // among layouts of one kind
  static constexpr std::uint64_t kLevelsMargin = 130;  // over raster order
  static constexpr std::uint64_t kRasterMargin = 115;  // over levels of lines and planes
  static constexpr std::uint64_t kDenseMargin = 130;   // over levels where codes are large
  static constexpr std::uint64_t kVolumeMargin = 100;  // over levels of volumes
  static constexpr std::uint64_t kLowestMargin = 85;   // the same of large arrays, at the lowest effort
  // And bits an element, in units of 2^-12: where few are enough, small boxes say little.
  static constexpr std::uint64_t kSlack = 1 << 8;
  static constexpr std::uint64_t kLevelsSlack = 1 << 10;

  // Of arrays this small models are a good part, which quick estimates do not count.
  static constexpr std::uint64_t kNoQuickEstimate = UINT64_C(1) << 13;

  static Trial loosened(Trial trial, std::uint64_t slack) {
    trial.bits += trial.elems * slack;
    return trial;
  }
  bool bits_above(std::uint64_t most) const { return best().bits > best().elems * most; }
  /// Whether trials can tell how levels do where codes are large. With a mask, or on all of a small array, they are too
  /// kind to them.
  bool boxes_show_levels() const { return request_.shape.elems() > kWholeElems && !stage_.array.gaps; }

  bool may_be_best(const Trial& trial) const {
    if (&trial == &best()) return true;
    for (const Trial& other : trials_) {
      if (trial.layout.wavelet && !other.layout.wavelet) {
        if (100 * trial.plain * other.elems >= plain_percent(request_) * other.plain * trial.elems) return false;
        continue;
      }
      if (other.layout.wavelet) continue;
      const bool like = trial.layout.levels == other.layout.levels;
      const Trial loose = loosened(other, !like && trial.layout.levels ? kLevelsSlack : kSlack);
      const std::uint64_t margin = like ? kLikeMargin : trial.layout.levels ? kLevelsMargin : margin_over_levels(other);
      if (!cheaper(trial, loose, margin)) return false;
    }
    return true;
  }

  std::uint64_t margin_over_levels(const Trial& levels) const {
    if (levels.dense) return kDenseMargin;
    if (level_extents(levels.layout).size() < 3) return kRasterMargin;
    return effort_of(request_) == Effort::lowest && !stage_.array.gaps ? kLowestMargin : kVolumeMargin;
  }

  Status run_new() {
    const std::size_t first = done_;
    done_ = trials_.size();
    return stage_.run(trials_, first);
  }

  void add_raster() {
    if (choice_.axes) {
      trials_.push_back({{choice_.axes->first, choice_.axes->second}});
      return;
    }
    for (const Layout& layout : all_layouts(request_.shape))
      if (possible(request_, layout)) trials_.push_back({layout});
    if (trials_.empty()) trials_.push_back({});
  }

  /// In levels only the axes as they are, and as raster order likes them best.
  void add_levels() {
    if (choice_.axes) return add_levels_of(*choice_.axes);
    const bool any = !trials_.empty();
    const Layout liked = any ? best().layout : own_;
    const bool own = !any || possible(request_, own_);
    if (own) add_levels_of(own_);
    if (!own || level_extents(liked) != level_extents(own_)) add_levels_of(liked);
  }
  /// Extents of the axes that levels have; a merged one may be split again.
  Vector<std::uint64_t> level_extents(Layout layout) const {
    layout.levels = true;
    const ChunkGrid grid = make_grid(request_.shape, layout);
    const LevelsForm form = levels_form(request_.shape, layout, grid);
    Vector<std::uint64_t> extents;
    for (std::size_t a = 0; a < 3; ++a) {
      const std::uint64_t inner = a == form.split_axis ? form.inner : 1;
      for (const std::uint64_t extent : {grid.extents[a] / inner, inner})
        if (extent > 1) extents.push_back(extent);
    }
    return extents;
  }
  void add_levels_of(Layout layout) {
    layout.levels = true;
    if (choice_.levels) trials_.push_back({layout});
    layout.sequential = true;
    if (choice_.planes && (!choice_.raster || first_extent(request_.shape, layout) <= kMostPlanes))
      trials_.push_back({layout});
  }

  const PlanRequest& request_;
  const LayoutChoice& choice_;
  const Stage& stage_;
  Layout own_;
  Vector<Trial> trials_;
  std::size_t done_ = 0;  ///< trials that have run
};

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
  if (raster_only && choice.axes) return ChosenLayout{{choice.axes->first, choice.axes->second}};
  BufferPool scratch;
  QUERN_ASSIGN_OR_RETURN(const bool merging, merging_pays(request, choice, kernels, scratch));
  const auto shape_of = merging ? slab_shape : trial_shape;
  const Shape first_shape = shape_of(request.shape, request.sample->elems(), kFirstElems);
  const std::uint64_t second_elems = request.shape.elems() <= kWholeElems ? kWholeElems : kSecondElems;
  const Shape second_shape = shape_of(request.shape, request.sample->elems(), second_elems);
  QUERN_ASSIGN_OR_RETURN(const TrialArray first_array, take_trial_array(request, first_shape));
  const Stage first{request, kernels, first_array, choice.parts, scratch, true};
  QuickEstimates estimates(request, choice, first);
  QUERN_RETURN_IF_ERROR(estimates.run());
  const Vector<Trial> near = estimates.near_best();
  if (near.size() == 1 && (wants_speed(request) || !tightening_open(request, near[0]))) return chosen(request, near[0]);
  QUERN_ASSIGN_OR_RETURN(const TrialArray second_array, take_trial_array(request, second_shape));
  const Stage second{request, kernels, second_array, choice.parts, scratch};
  // Large arrays are mostly best in levels; where they are, or nearly so, speed does without further trials.
  const bool least_effort = effort_of(request) == Effort::lowest;
  QUERN_ASSIGN_OR_RETURN(Vector<Trial> trials, run_trials(second, least_effort ? best_of_each_kind(near) : near));
  std::size_t winner = best_for_chunks(second, trials);
  for (const Trial& trial : trials)
    if (least_effort && trial.layout.levels && !cheaper(trials[winner], trial, kClosePercent))
      return chosen(request, trial);
  if (trials.size() < near.size()) {
    QUERN_ASSIGN_OR_RETURN(const Vector<Trial> others, run_trials(second, untried(near, trials)));
    trials.insert(trials.end(), others.begin(), others.end());
    winner = best_for_chunks(second, trials);
  }
  const Vector<Trial> doubt = in_doubt(request, trials, winner);
  if (doubt.empty()) return chosen(request, trials[winner]);
  const Shape third_shape = shape_of(request.shape, request.sample->elems(), kThirdElems);
  QUERN_ASSIGN_OR_RETURN(const TrialArray third_array, take_trial_array(request, third_shape));
  const Stage third{request, kernels, third_array, choice.parts, scratch};
  QUERN_ASSIGN_OR_RETURN(const Vector<Trial> again, run_trials(third, doubt));
  return chosen(request, again[best_for_chunks(third, again)]);
}

}  // namespace quern::codec::stencil

// Estimates on a small box, and margins found on real fields.
#include "codecs/stencil/plan/quick_estimates.h"

#include <algorithm>
#include <array>

#include "codecs/stencil/effort.h"
#include "codecs/stencil/levels/form.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint64_t kMostPlanes = 48;  // a longer first axis is better off coarse to fine, or in raster order
constexpr std::uint64_t kShortRow = 8;     // rows this short are mostly margins
// Bits an element, in units of 2^-12. Small boxes take more than the array does.
constexpr std::uint64_t kDenseBits = 20 << 10;   // in raster order before contexts: from here on levels seldom win,
constexpr std::uint64_t kMostBits = 40 << 10;    // and from here on never
constexpr std::uint64_t kWaveletBits = 9 << 10;  // from here on the transform does not pay
constexpr std::uint64_t kWaveletBitsForPsnr = 24 << 10;
// Contexts gain the transform less than other layouts: coefficients may take so much of what others take before them.
constexpr std::uint64_t kPlainPercent = 90;
constexpr std::uint64_t kPlainPercentForPsnr = 300;

// Hundredths of the bits that others take. How much contexts gain differs between layouts, most between raster order
// and levels; the transform always gains less. Found on real fields.
constexpr std::uint64_t kLikeMargin = 115;    // among layouts of one kind
constexpr std::uint64_t kLevelsMargin = 130;  // over raster order
constexpr std::uint64_t kRasterMargin = 115;  // over levels of lines and planes
constexpr std::uint64_t kDenseMargin = 130;   // over levels where codes are large
constexpr std::uint64_t kVolumeMargin = 100;  // over levels of volumes
constexpr std::uint64_t kLowestMargin = 85;   // the same of large arrays, at the lowest effort
// And bits an element, in units of 2^-12: where few are enough, small boxes say little.
constexpr std::uint64_t kSlack = 1 << 8;
constexpr std::uint64_t kLevelsSlack = 1 << 10;

// Of arrays this small models are a good part, which quick estimates do not count.
constexpr std::uint64_t kNoQuickEstimate = UINT64_C(1) << 13;

Trial loosened(Trial trial, std::uint64_t slack) {
  trial.bits += trial.elems * slack;
  return trial;
}

/// Of the first axis of the grid that has one.
std::uint64_t first_extent(const Shape& shape, const Layout& layout) {
  for (const std::uint64_t extent : make_grid(shape, layout).extents)
    if (extent > 1) return extent;
  return 1;
}

}  // namespace

Layout own_axes(const Shape& shape) {
  const std::size_t rank = shape.rank();
  return {static_cast<std::uint8_t>(rank < 3 ? 0 : rank - 2), static_cast<std::uint8_t>(rank < 2 ? 0 : rank - 1)};
}

bool few_chunks(const PlanRequest& request, const Layout& layout) {
  const auto counts = make_grid(request.shape, layout).counts();
  return counts[0] * counts[1] * counts[2] <= request.max_chunks;
}

bool possible(const PlanRequest& request, const Layout& layout) {
  const bool long_rows = make_grid(request.shape, layout).extents[2] >= kShortRow;
  return few_chunks(request, layout) && (long_rows || request.shape.elems() <= kShortRow);
}

std::uint64_t plain_percent(const PlanRequest& request) {
  return wants_psnr(request) ? kPlainPercentForPsnr : kPlainPercent;
}

QuickEstimates::QuickEstimates(const PlanRequest& request, const LayoutChoice& choice, const Stage& stage, bool all)
    : request_(request), choice_(choice), stage_(stage), all_(all), own_(own_axes(request.shape)) {}

Status QuickEstimates::run() {
  if (choice_.raster) add_raster();
  QUERN_RETURN_IF_ERROR(run_new());
  if (!choice_.levels && !choice_.planes && !choice_.wavelet) return {};
  const bool dense = !trials_.empty() && bits_above(kDenseBits);
  if (!all_ && dense && (bits_above(kMostBits) || !boxes_show_levels())) return {};
  add_levels();
  // Blocks and whole encodings show levels as they are.
  for (Trial& trial : trials_) trial.dense = !all_ && dense && trial.layout.levels;
  add_wavelet();
  return run_new();
}

Vector<Trial> QuickEstimates::near_best() const {
  Vector<Trial> near;
  const bool all = request_.shape.elems() <= kNoQuickEstimate;
  for (const Trial& trial : trials_)
    if (all || may_be_best(trial)) near.push_back(trial);
  return near;
}

Vector<Trial> QuickEstimates::possible_winners() const {
  Vector<Trial> raster;
  for (const Trial& trial : trials_)
    if (!trial.layout.levels && !trial.layout.wavelet) raster.push_back(trial);
  Vector<Trial> winners;
  for (const Trial& trial : trials_)
    if (trial.layout.levels || trial.layout.wavelet ||
        cheaper(trial, loosened(raster[best_of(raster)], kSlack), kLikeMargin))
      winners.push_back(trial);
  return winners;
}

/// Whether trials can tell how levels do where codes are large. With a mask, or on all of a small array, they are too
/// kind to them.
bool QuickEstimates::boxes_show_levels() const { return request_.shape.elems() > kWholeElems && !stage_.array.gaps; }

bool QuickEstimates::may_be_best(const Trial& trial) const {
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

std::uint64_t QuickEstimates::margin_over_levels(const Trial& levels) const {
  if (levels.dense) return kDenseMargin;
  if (level_extents(levels.layout).size() < 3) return kRasterMargin;
  return effort_of(request_) == Effort::lowest && !stage_.array.gaps ? kLowestMargin : kVolumeMargin;
}

Status QuickEstimates::run_new() {
  const std::size_t first = done_;
  done_ = trials_.size();
  return stage_.run(trials_, first);
}

void QuickEstimates::add_raster() {
  if (choice_.axes) {
    trials_.push_back({{choice_.axes->first, choice_.axes->second}});
    return;
  }
  for (const Layout& layout : all_layouts(request_.shape))
    if (possible(request_, layout)) trials_.push_back({layout});
  if (trials_.empty()) trials_.push_back({});
}

/// In levels only the axes as they are, and as raster order likes them best.
void QuickEstimates::add_levels() {
  if (choice_.axes) return add_levels_of(*choice_.axes);
  const bool any = !trials_.empty();
  const Layout liked = any ? best().layout : own_;
  const bool own = !any || (all_ ? few_chunks(request_, own_) : possible(request_, own_));
  if (own) add_levels_of(own_);
  if (!own || level_extents(liked) != level_extents(own_)) add_levels_of(liked);
}

void QuickEstimates::add_levels_of(Layout layout) {
  layout.levels = true;
  if (choice_.levels) trials_.push_back({layout});
  layout.sequential = true;
  if (choice_.planes && (all_ || !choice_.raster || first_extent(request_.shape, layout) <= kMostPlanes))
    trials_.push_back({layout});
}

/// The transform pays where few bits an element are enough.
void QuickEstimates::add_wavelet() {
  const std::uint64_t most = wants_psnr(request_) ? kWaveletBitsForPsnr : kWaveletBits;
  const bool slow = !tries_transform(request_) && !trials_.empty();
  if (!choice_.wavelet || slow || !(all_ || trials_.empty() || !bits_above(most))) return;
  Layout layout = choice_.axes ? Layout{choice_.axes->first, choice_.axes->second} : own_;
  layout.wavelet = true;
  trials_.push_back({layout});
}

/// Extents of the axes that levels have; a merged one may be split again.
Vector<std::uint64_t> QuickEstimates::level_extents(Layout layout) const {
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

}  // namespace quern::codec::stencil

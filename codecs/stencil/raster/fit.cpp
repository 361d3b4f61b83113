// Least squares and trial runs.
#include "codecs/stencil/raster/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "codecs/stencil/least_squares/sample_memory.h"
#include "codecs/stencil/least_squares/solve.h"
#include "codecs/stencil/raster/loop.h"
#include "coding/quick_estimate.h"
#include "coding/token_tally.h"
#include "kernels/entropy/token_distribution.h"

namespace quern::codec::stencil {
namespace {

using kernels::kMaxTaps;
using kernels::kRowClasses;
using kernels::kSampleBlock;
using kernels::StencilExtents;
using kernels::Tap;
using kernels::TapList;

/// Samples of the row class that most elements are of, and of another class, at most.
struct SampleCounts {
  std::size_t main;
  std::size_t other;
};
constexpr SampleCounts samples_for(RasterEffort effort) {
  switch (effort) {
    case RasterEffort::quick_estimate: return {2048, 0};
    case RasterEffort::estimate: return {8192, 256};
    case RasterEffort::low: return {8192, 1024};
    case RasterEffort::medium: return {24576, 4096};
    case RasterEffort::high: break;
  }
  return {32768, 8192};
}
constexpr std::size_t kMediumPart = 4;  // of those, for the weights of the last round's samples
constexpr std::size_t kQuickEstimateRounds = 2;
constexpr std::size_t kFirstRounds = 3;  // of reweighting, on original values
constexpr std::size_t kRefits = 2;       // on reconstructed values; one for an estimate
constexpr std::size_t kContextRounds = 4;
constexpr double kLeastExpected = 0.02;                   // magnitude of a residual, in codes
constexpr std::array<double, 3> kNoises{0.5, 0.25, 1.0};  // of the error of a reconstruction, in units of 1/12
constexpr std::uint64_t kWideBits = 3;  // an element: the noise of the bound is small against residuals
constexpr double kLeastScale = 0.3;     // of residuals in a neighbourhood, in codes
constexpr std::size_t kMinSamplesPerTap = 4;

/// Elements of a row class in C order of the box, every one of them by its number.
struct ClassRows {
  std::size_t first_plane = 0, planes = 0, first_row = 0, rows = 0;

  ClassRows(const StencilExtents& e, std::size_t c) {
    const std::size_t p = c / 2;
    first_plane = p;
    planes = e.planes <= p ? 0 : p == 2 ? e.planes - 2 : 1;
    if (e.rows == 1) {
      rows = c % 2 == 1 ? 1 : 0;
    } else {
      first_row = c % 2;
      rows = c % 2 == 0 ? 1 : e.rows - 1;
    }
  }
  std::size_t count() const { return planes * rows; }
};

/// Up to kStencilBlock elements side by side in a row.
struct Run {
  std::size_t plane = 0, row = 0, column = 0, count = 0;
  std::size_t index = 0;  ///< of the first, in the box
};

/// Calls visit(Run) for runs of at most about `most` elements of a class, spread evenly.
template <class Visit>
void for_runs(const TrialBox& box, std::size_t c, std::size_t most, const Visit& visit) {
  constexpr std::size_t kLength = kernels::kStencilBlock;
  const ClassRows rows(box.extents, c);
  const std::size_t columns = box.extents.columns;
  const std::size_t row_runs = (columns + kLength - 1) / kLength;
  const std::size_t total = rows.count() * row_runs;
  const std::size_t wanted = std::min(total, std::max<std::size_t>(most / std::min(columns, kLength), 1));
  for (std::size_t i = 0; i < wanted; ++i) {
    const auto n = static_cast<std::size_t>(std::uint64_t{i} * total / wanted);
    const std::size_t r = n / row_runs;
    Run run;
    run.plane = rows.first_plane + r / rows.rows;
    run.row = rows.first_row + r % rows.rows;
    run.column = n % row_runs * kLength;
    run.count = std::min(kLength, columns - run.column);
    run.index = (run.plane * box.extents.rows + run.row) * columns + run.column;
    visit(run);
  }
}

class Fit {
 public:
  Fit(const TrialBox& box, const kernels::StencilKernels& kernels, FitMemory& memory, RasterEffort effort,
      FittedParts parts, RasterModel& model)
      : box_(box),
        kernels_(kernels),
        memory_(memory),
        effort_(effort),
        parts_(parts),
        model_(model),
        shape_(box.extents.shape()) {}

  FitCost run(std::uint64_t most_plain) {
    memory_.planes.clear();
    load_originals();
    if (effort_ == RasterEffort::quick_estimate) {
      const std::uint64_t bits = quick_estimate();
      return {best_cost_, bits};
    }
    for (std::size_t c = 0; c < kRowClasses; ++c) {
      sets_[c] = {};
      if (!parts_.weights || !has_samples(c)) continue;
      fit_originals(c, kFirstRounds);
    }
    best_cost_ = UINT64_MAX;
    for (const double noise : kNoises) {
      for (std::size_t c = 0; c < kRowClasses; ++c)
        if (sets_[c].samples > 0) solve(c, noise);
      try_weights();
      if (!parts_.weights || wide_ || effort_ == RasterEffort::estimate) break;
    }
    if (effort_ == RasterEffort::estimate && best_cost_ > most_plain) return {best_cost_, best_cost_, true};
    if (parts_.weights) refit_all();
    restore_best();
    drop_cheap_classes();
    fit_context();
    return {best_cost_, best_cost_};
  }

 private:
  void fit_originals(std::size_t c, std::size_t rounds) {
    for (std::size_t round = 0; round < rounds; ++round) {
      const bool last = round + 1 == rounds;
      const std::size_t part = effort_ == RasterEffort::medium && !last ? kMediumPart : 1;
      build(c, round > 0 ? Weighting::residual : Weighting::none, samples_of(c) / part);
      solve(c, kNoises[0]);
    }
  }

  /// What all elements would cost if they were of the class that most are of.
  std::uint64_t quick_estimate() {
    const std::size_t c = main_class();
    sets_ = {};
    if (parts_.weights && has_samples(c)) fit_originals(c, kQuickEstimateRounds);
    try_weights();
    coding::QuickEstimate cost;
    const StencilExtents& e = box_.extents;
    for (std::size_t p = 0; p < e.planes; ++p) {
      for (std::size_t r = 0; r < e.rows; ++r) {
        const std::size_t at = (p * e.rows + r) * e.columns;
        if (kernels::row_class(e, p, r) == c)
          cost.add_row(memory_.codes + at, box_.special == nullptr ? nullptr : box_.special + at, e.columns);
      }
    }
    if (cost.elems() == 0) return best_cost_;
    return static_cast<std::uint64_t>(static_cast<double>(cost.bits()) *
                                      (static_cast<double>(coded_) / static_cast<double>(cost.elems())));
  }

  void refit_all() {
    if (effort_ == RasterEffort::medium) {
      if (!memory_.planes.can_have_mean() || !try_mean()) refit(Weighting::local);
      return;
    }
    refit(Weighting::residual);
    for (std::size_t i = 1; effort_ == RasterEffort::high && i < kRefits; ++i)
      if (!refit(Weighting::local)) break;
    if (effort_ == RasterEffort::high && memory_.planes.can_have_mean()) try_mean();
  }

  /// Normal equations of a row class. Unknowns: first the near tap's value, then differences of the other taps to it;
  /// the target is the difference to it too. Differences are small, so the sums keep their digits.
  struct Set {
    TapList list;
    std::size_t samples = 0;
    double weight = 0;
    SquareSums sums;
    std::array<double, kMaxTaps> solution{};
  };

  /// What a sample counts for: the same for all; less, the more of it the last solution leaves; less, too, where
  /// neighbours have large residuals, as bits are lost to what is large for its neighbourhood.
  enum class Weighting : std::uint8_t { none, residual, local };

  /// Fits to the best reconstruction; true when that gives a better one.
  bool refit(Weighting weighting) {
    restore_best();
    for (std::size_t c = 0; c < kRowClasses; ++c) {
      if (sets_[c].samples == 0) continue;
      build(c, weighting, samples_of(c));
      solve(c, 0);
    }
    return try_weights();
  }

  /// The same with taps into the mean of earlier planes, if they pay for their weights.
  bool try_mean() {
    restore_best();
    model_.mean = true;
    std::uint64_t stored = 0;
    for (std::size_t c = 4; c < kRowClasses; ++c) {
      if (sets_[c].samples == 0) continue;
      const std::size_t before = sets_[c].list.count;
      sets_[c].list = kernels::taps_of(shape_, c, true);
      stored += (sets_[c].list.count - before) * std::uint64_t{model_.format.weight_bits} << 12;
    }
    const std::uint64_t without = best_cost_;
    best_cost_ -= std::min(best_cost_, stored);
    if (refit(Weighting::local)) {
      if (effort_ == RasterEffort::high) refit(Weighting::local);
      return true;
    }
    best_cost_ = without;
    model_.mean = false;
    for (std::size_t c = 4; c < kRowClasses; ++c) sets_[c].list = kernels::taps_of(shape_, c, false);
    return false;
  }

  bool has_samples(std::size_t c) {
    Set& set = sets_[c];
    set.list = kernels::taps_of(shape_, c, model_.mean);
    std::size_t n = 0;
    for_runs(box_, c, samples_of(c), [&](const Run& run) {
      for (std::size_t i = 0; i < run.count; ++i) n += is_special(run.index + i) ? 0 : 1;
    });
    set.samples = n >= kMinSamplesPerTap * set.list.count ? n : 0;
    return set.samples > 0;
  }

  bool is_special(std::size_t index) const { return box_.special != nullptr && box_.special[index] != 0; }

  std::size_t main_class() const { return box_.extents.planes > 2 ? 5 : box_.extents.planes > 1 ? 3 : 1; }

  std::size_t samples_of(std::size_t c) const {
    const SampleCounts most = samples_for(effort_);
    return c == main_class() ? most.main : most.other;
  }

  void load_originals() {
    WorkPlanes& planes = memory_.planes;
    const std::size_t columns = box_.extents.columns;
    for (std::size_t p = 0; p < box_.extents.planes; ++p) {
      for (std::size_t r = 0; r < box_.extents.rows; ++r) {
        planes.start_row(p, r);
        const std::size_t at = (p * box_.extents.rows + r) * columns;
        double* const values = planes.values(p, r);
        for (std::size_t x = 0; x < columns; ++x) values[x] = static_cast<double>(box_.targets[at + x]);
        planes.finish_row(p, r);
      }
    }
  }

  void build(std::size_t c, Weighting weighting, std::size_t samples) {
    Set& set = sets_[c];
    const std::size_t taps = set.list.count;
    const std::size_t width = taps + 1;
    const double unit = std::ldexp(1.0, -static_cast<int>(model_.format.fraction_bits));
    const auto context = kernels::context_taps(shape_);
    const double share = 1 / static_cast<double>(context.size());
    std::array<std::uint32_t, kernels::kMaxContextTaps> ones{};
    ones.fill(1);
    set.sums.clear(width);
    set.weight = 0;
    alignas(64) std::array<double, (kMaxTaps + 1) * kSampleBlock> rows;  // NOLINT: set below
    alignas(64) std::array<double, kSampleBlock> weights;                // NOLINT: set below
    std::size_t filled = 0;
    const auto flush = [&] {
      clear_behind(rows.data(), width, filled);
      clear_behind(weights.data(), 1, filled);
      kernels_.normal_sums(rows.data(), weights.data(), width, set.sums.data());
      filled = 0;
    };
    for_runs(box_, c, samples, [&](const Run& run) {
      std::array<const double*, kMaxTaps> sources{};
      for (std::size_t t = 0; t < taps; ++t)
        sources[t] = memory_.planes.tap(run.plane, run.row, set.list.taps[t]) + run.column;
      alignas(64) std::array<double, kernels::kStencilBlock> left{};
      kernels_.sample_rows(sources.data(), taps, box_.targets + run.index, unit, set.solution.data(),
                           rows.data() + filled, left.data());
      alignas(64) std::array<std::uint32_t, kernels::kStencilBlock> around{};
      if (weighting == Weighting::local) {
        std::array<const std::uint32_t*, kernels::kMaxContextTaps> magnitudes{};
        for (std::size_t t = 0; t < context.size(); ++t)
          magnitudes[t] = memory_.planes.context_tap(run.plane, run.row, context[t]) + run.column;
        kernels_.context_sums(magnitudes.data(), ones.data(), context.size(), 0, run.count, around.data());
      }
      double* const w = weights.data() + filled;
      for (std::size_t i = 0; i < kernels::kStencilBlock; ++i) {
        const double size = std::fabs(left[i]);
        const double scale = kLeastScale + share * static_cast<double>(static_cast<std::int32_t>(around[i]));
        w[i] = weighting == Weighting::none       ? 1.0
               : weighting == Weighting::residual ? 1 / (1 + 2 * size)
                                                  : 1 / (scale * (scale + size));
      }
      for (std::size_t i = 0; i < kernels::kStencilBlock; ++i)
        if (i >= run.count || is_special(run.index + i)) w[i] = 0;
      for (std::size_t i = 0; i < kernels::kStencilBlock; ++i) set.weight += w[i];
      filled += kernels::kStencilBlock;
      if (filled == kSampleBlock) flush();
    });
    if (filled > 0) flush();
  }

  /// `noise`: expected square error of a reconstructed value, in units of 1/12; its weight in the equations keeps
  /// weights small where values say little more than that.
  void solve(std::size_t c, double noise) {
    Set& set = sets_[c];
    const std::size_t taps = set.list.count;
    SquareSums sums = set.sums;
    const double penalty = set.weight * (noise / 12 + 1e-4);
    // The weight of the near tap is 1 + c0 - c1 - c2 - ..., so the sum of squared weights is not diagonal.
    for (std::size_t k = 0; k < taps; ++k) {
      const double sk = k == 0 ? 1 : -1;
      for (std::size_t l = 0; l <= k; ++l) sums.at(k, l) += penalty * sk * (l == 0 ? 1 : -1);
      if (k > 0) sums.at(k, k) += penalty;
      sums.at(taps, k) -= penalty * sk;
    }
    if (!solve_symmetric(sums, taps, set.solution.data())) set.solution.fill(0);
    round_weights(c);
  }

  void round_weights(std::size_t c) {
    const Set& set = sets_[c];
    const double one = std::ldexp(1.0, static_cast<int>(model_.format.weight_bits));
    const double limit = 8 * one;
    Weights& weights = model_.weights[c];
    weights.fill(0);
    double whole = 1 + set.solution[0];
    std::int64_t sum = 0;
    bool usable = whole > -4 && whole < 4;
    for (std::size_t t = 1; t < set.list.count && usable; ++t) {
      const double w = set.solution[t] * one;
      usable = w > -limit && w < limit;
      if (!usable) break;
      weights[t] = static_cast<std::int32_t>(std::lrint(w));
      sum += weights[t];
    }
    std::int64_t magnitudes = 0;
    if (usable) {
      // The near tap takes up what rounding did to the sum: levels are kept.
      weights[0] = static_cast<std::int32_t>(std::lrint(whole * one) - sum);
      for (const std::int32_t w : weights) magnitudes += w < 0 ? -w : w;
    }
    model_.has_weights[c] = usable && magnitudes <= std::int64_t{1} << (model_.format.weight_bits + kWeightSumBits);
    if (!model_.has_weights[c]) weights.fill(0);
  }

  /// Runs the loop with the model's weights; true when it is the best so far.
  bool try_weights() {
    for (std::size_t c = 0; c < kRowClasses; ++c) model_.has_weights[c] = sets_[c].samples > 0 && model_.has_weights[c];
    const std::uint64_t cost = run_loop();
    current_is_best_ = cost < best_cost_;
    if (!current_is_best_) return false;
    best_cost_ = cost;
    best_weights_ = model_.weights;
    best_has_ = model_.has_weights;
    return true;
  }

  /// Makes the best weights and their reconstruction current.
  void restore_best() {
    if (current_is_best_) return;
    model_.weights = best_weights_;
    model_.has_weights = best_has_;
    run_loop();
    current_is_best_ = true;
  }

  std::uint64_t run_loop() {
    complete_weights(shape_, model_);
    std::array<SplitWeights, kRowClasses> split;
    for (std::size_t c = 0; c < kRowClasses; ++c) {
      split[c] = split_weights(shape_, c, model_);
      tallies_[c].clear();
    }
    WorkPlanes& planes = memory_.planes;
    const StencilExtents& e = box_.extents;
    for (std::size_t p = 0; p < e.planes; ++p) {
      if (planes.can_have_mean()) planes.update_mean(kernels_, p);
      for (std::size_t r = 0; r < e.rows; ++r) {
        const std::size_t c = kernels::row_class(e, p, r);
        const std::size_t at = (p * e.rows + r) * e.columns;
        planes.start_row(p, r);
        const LoopRow row{planes.far_sums(kernels_, p, r, split[c]),
                          box_.targets + at,
                          box_.special == nullptr ? nullptr : box_.special + at,
                          planes.values(p, r),
                          planes.magnitudes(p, r),
                          memory_.codes + at};
        run_row_of(kernels_, row, split[c], model_, e.columns);
        planes.finish_row(p, r);
        tallies_[c].add(kernels_.residuals, row.codes, row.special, e.columns);
      }
    }
    for (std::size_t c = 0; c < kRowClasses; ++c) class_tokens_[c] = tallies_[c].counts();
    return total_cost();
  }

  /// Order-0 entropy of the tokens, with the bits they leave open.
  std::uint64_t total_cost() {
    std::array<std::uint32_t, kernels::kResidualTokens> counts{};
    for (const coding::TokenCounts& part : class_tokens_)
      for (std::size_t t = 0; t < counts.size(); ++t) counts[t] += part[t];
    std::uint64_t total = 0;
    std::uint64_t cost = 0;
    for (const std::uint32_t n : counts) total += n;
    const std::uint32_t log_total = total == 0 ? 0 : kernels::log2_fixed(static_cast<std::uint32_t>(total));
    for (unsigned t = 0; t < counts.size(); ++t) {
      token_cost_[t] = 16u << 12;
      if (counts[t] == 0) continue;
      const std::uint32_t open = kernels::token_open_bits(t) + (t > 0 ? 1 : 0);
      token_cost_[t] = log_total - kernels::log2_fixed(counts[t]) + (open << 12);
      cost += std::uint64_t{counts[t]} * token_cost_[t];
    }
    wide_ = cost > (total * kWideBits) << 12;
    coded_ = total;
    return cost;
  }

  /// Weights of a class that cannot pay for themselves are not stored.
  void drop_cheap_classes() {
    for (std::size_t c = 0; c < kRowClasses; ++c) {
      if (!model_.has_weights[c]) continue;
      std::uint64_t cost = 0;
      for (unsigned t = 0; t < class_tokens_[c].size(); ++t)
        cost += std::uint64_t{class_tokens_[c][t]} * token_cost_[t];
      const std::uint64_t stored = sets_[c].list.count * std::uint64_t{model_.format.weight_bits} << 12;
      if (c < 4 && cost < 10 * stored) model_.has_weights[c] = false;
    }
    complete_weights(shape_, model_);
  }

  /// Non-negative weights that give the expected magnitude of a residual from its neighbours' magnitudes.
  void fit_context() {
    auto taps = kernels::context_taps(shape_);
    if (!parts_.contexts) taps = taps.first(0);
    const std::size_t unknowns = taps.size() + 1;
    const std::size_t width = unknowns + 1;
    std::array<double, kernels::kMaxContextTaps + 1> weights{};
    weights.fill(0.8 / static_cast<double>(taps.empty() ? 1 : taps.size()));
    weights[taps.size()] = 0.1;
    alignas(64) std::array<double, (kernels::kMaxContextTaps + 2) * kSampleBlock> rows;  // NOLINT: set below
    alignas(64) std::array<double, kSampleBlock> sample_weights;                         // NOLINT: set below
    SquareSums sums;
    for (std::size_t round = 0; round < kContextRounds; ++round) {
      sums.clear(width);
      std::size_t filled = 0;
      const auto flush = [&] {
        clear_behind(rows.data(), width, filled);
        clear_behind(sample_weights.data(), 1, filled);
        kernels_.normal_sums(rows.data(), sample_weights.data(), width, sums.data());
        filled = 0;
      };
      for (std::size_t c = 0; c < kRowClasses; ++c) {
        for_runs(box_, c, samples_of(c), [&](const Run& run) {
          std::array<const std::uint32_t*, kernels::kMaxContextTaps> magnitudes{};
          for (std::size_t t = 0; t < taps.size(); ++t)
            magnitudes[t] = memory_.planes.context_tap(run.plane, run.row, taps[t]) + run.column;
          const std::uint32_t* const own = memory_.planes.magnitudes(run.plane, run.row) + run.column;
          // Weights by the variance of a geometric distribution.
          kernels_.fit.magnitude_rows(magnitudes.data(), taps.size(), own, weights.data(), kLeastExpected,
                                      rows.data() + filled, sample_weights.data() + filled);
          for (std::size_t i = 0; i < kernels::kStencilBlock; ++i)
            if (i >= run.count || is_special(run.index + i)) sample_weights[filled + i] = 0;
          filled += kernels::kStencilBlock;
          if (filled == kSampleBlock) flush();
        });
      }
      if (filled > 0) flush();
      const auto before = weights;
      if (!solve_non_negative(sums, unknowns, weights.data())) break;
      // Whole steps go back and forth where much of a chunk is still.
      if (round == 0) continue;
      for (std::size_t k = 0; k < unknowns; ++k) weights[k] = (weights[k] + before[k]) / 2;
    }
    const double one = std::ldexp(1.0, coding::kContextBits);
    const auto fixed = [&](double w) {
      const double scaled = w * one;
      return scaled < coding::kMaxContextWeight ? static_cast<std::uint32_t>(std::lrint(scaled))
                                                : coding::kMaxContextWeight;
    };
    for (std::size_t t = 0; t < taps.size(); ++t) model_.context_weights[t] = fixed(weights[t]);
    model_.context_constant = fixed(weights[taps.size()]);
  }

  const TrialBox& box_;
  const kernels::StencilKernels& kernels_;
  FitMemory& memory_;
  RasterEffort effort_;
  FittedParts parts_;
  RasterModel& model_;
  kernels::StencilShape shape_;
  std::array<Set, kRowClasses> sets_;
  std::array<Weights, kRowClasses> best_weights_{};
  std::array<bool, kRowClasses> best_has_{};
  std::uint64_t best_cost_ = UINT64_MAX;
  bool current_is_best_ = false;
  std::array<coding::TokenTally, kRowClasses> tallies_;
  std::array<coding::TokenCounts, kRowClasses> class_tokens_{};
  std::array<std::uint32_t, kernels::kResidualTokens> token_cost_{};
  bool wide_ = false;
  std::uint64_t coded_ = 0;
};

}  // namespace

FitCost fit_model(const TrialBox& box, const kernels::StencilKernels& kernels, FitMemory& memory, RasterEffort effort,
                  FittedParts parts, RasterModel& model, std::uint64_t most_plain) {
  return Fit(box, kernels, memory, effort, parts, model).run(most_plain);
}

}  // namespace quern::codec::stencil

// Least squares on sampled rows.
#include "codecs/stencil/levels/fit.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "codecs/stencil/least_squares/solve.h"
#include "codecs/stencil/levels/walk.h"
#include "kernels/common/bits.h"
#include "kernels/entropy/token_distribution.h"
#include "libcompress/format/bit_stream.h"

namespace quern::codec::stencil {
namespace {

using kernels::kSampleBlock;

constexpr SampleLimits kPredictorSamples{1536, 6144};
constexpr SampleLimits kMediumSamples{768, 3072};
constexpr SampleLimits kLowSamples{384, 1536};
constexpr std::size_t kMinSamplesPerGroup = 6;
constexpr std::size_t kRounds = 2;           // of reweighting; one for a quick fit
constexpr double kRidge = 0.004;             // pull towards the cubic, in square codes a sample
constexpr std::uint64_t kNetworkGain = 256;  // a network gains at least one part in so many
constexpr std::uint8_t kFitted = static_cast<std::uint8_t>(PredictorKind::fitted);

const SampleLimits& predictor_samples(Effort effort) {
  return effort >= Effort::low ? kLowSamples : effort == Effort::medium ? kMediumSamples : kPredictorSamples;
}

/// Fills the blocks of a class. Of each row that has samples, `features` is told
/// open(row's index), then fill(sampled columns, feature's number, group 0's mean or null, scale, out) in turn.
template <class Features>
void gather_samples(const LevelAxes& axes, unsigned level, const ClassRows& rows, const CodePlaces& places,
                    const LevelTargets& targets, const GroupList& list, const LevelsFitting& how,
                    const LevelsModel& model, FitRoom& room, Features features) {
  const double unit = 1 / static_cast<double>(model.quantum(level));
  const std::size_t width = list.count;
  const std::size_t wanted = samples_of(rows, predictor_samples(how.effort));
  const std::size_t fitting = kSampleBlock / sampled_columns(rows);  // rows in a block, at least
  room.start((sampled_rows(rows, wanted) + fitting - 1) / fitting, width);
  const ClassExtents extents = extents_of_class(axes, level, rows.parity_class);
  for_sampled_rows(rows, wanted, [&](std::size_t row) {
    const RowIndex index = index_in_class(extents, axes.rank, row);
    const std::size_t code = places.of(rows.parity_class, row);
    const SampledColumns columns(rows, row, targets.special == nullptr ? nullptr : targets.special + code);
    if (room.filled.empty() || room.filled.back() + columns.count > kSampleBlock) {
      room.close_block(width);
      room.filled.push_back(0);
    }
    double* const to = room.block(room.filled.size() - 1, width) + room.filled.back();
    features.open(index);
    for (std::size_t g = 0; g < width; ++g)
      features.fill(columns, g, g == 0 || !list.groups[g].keeps_level() ? nullptr : to,
                    unit / (list.groups[g].pair ? 2 : 1), to + g * kSampleBlock);
    double* const target = to + width * kSampleBlock;
    const std::int64_t* const wanted_values = targets.rows->row(rows.parity_class, index, code);
    if (columns.gaps) {
      columns.each(wanted_values,
                   [&](std::size_t s, std::int64_t v) { target[s] = static_cast<double>(v) * unit - to[s]; });
    } else {
      how.kernels.fit.differences(wanted_values + columns.first, to, unit, columns.count, target);
    }
    room.filled.back() += static_cast<std::uint32_t>(columns.count);
  });
  room.close_block(width);
}

/// The feature of the sampled columns that `count` sources make.
template <class Value>
void add_feature(const SampledColumns& columns, const Value* const* rows, const double* weights, std::size_t count,
                 const double* mean, double scale, const kernels::StencilKernels& kernels, double* out) {
  if (columns.gaps) {
    std::fill_n(out, columns.count, 0.0);
    for (std::size_t t = 0; t < count; ++t)
      columns.each(rows[t], [&](std::size_t s, Value v) { out[s] += weights[t] * static_cast<double>(v); });
    for (std::size_t s = 0; s < columns.count; ++s) out[s] = out[s] * scale - (mean == nullptr ? 0 : mean[s]);
    return;
  }
  std::array<const Value*, ValueSourcesOf<Value>::kMost> from;  // NOLINT: the first `count` are set
  for (std::size_t t = 0; t < count; ++t) from[t] = rows[t] + columns.first;
  kernels.fit.of<Value>().feature(from.data(), weights, count, mean, scale, columns.count, out);
}

/// From the values of the open level.
template <class Value>
class GridFeatures {
 public:
  GridFeatures(const LevelGridOf<Value>& grid, std::size_t parity_class, const GroupList& list, EdgeRows<Value>& edges,
               const kernels::StencilKernels& kernels)
      : grid_(grid), parity_class_(parity_class), list_(list), edges_(edges), kernels_(kernels) {
    one_.count = 1;
    ones_.fill(1);
    grid.plan_values(parity_class, list, ones_, planned_);
  }

  void open(const RowIndex& index) {
    index_ = index;
    inside_ = grid_.inside(index);
    first_ = 0;
    if (inside_) grid_.planned_sources(index, planned_, sources_);
    if (list_.count == list_.linear) return;
    edges_.open(grid_, parity_class_, index, list_, nullptr);
    edges_.make(0, grid_.view(parity_class_).extents[grid_.axes().rank - 1], kernels_.edges);
  }
  void fill(const SampledColumns& columns, std::size_t g, const double* mean, double scale, double* out) {
    if (g >= list_.linear) {
      constexpr double kOne = 1;
      const Value* const row = edges_.row(g - list_.linear);
      return add_feature<Value>(columns, &row, &kOne, 1, mean, scale, kernels_, out);
    }
    std::size_t count = list_.groups[g].pair ? 2 : 1;
    if (!inside_) {
      one_.groups[0] = list_.groups[g];
      grid_.value_sources(parity_class_, index_, one_, ones_, sources_);
      first_ = 0;
      count = sources_.count;
    }
    add_feature(columns, sources_.rows.data() + first_, sources_.weights.data() + first_, count, mean, scale, kernels_,
                out);
    first_ += count;
  }

 private:
  const LevelGridOf<Value>& grid_;
  std::size_t parity_class_;
  const GroupList& list_;
  EdgeRows<Value>& edges_;
  const kernels::StencilKernels& kernels_;
  GroupList one_;
  GroupWeights ones_{};
  PlannedTaps<double> planned_;  ///< of rows away from the border, those of a group side by side
  ValueSourcesOf<Value> sources_;
  RowIndex index_{};
  bool inside_ = false;
  std::size_t first_ = 0;  ///< source of the group
};

/// From sums that somebody else has made.
class SummedFeatures {
 public:
  SummedFeatures(const double* sums, std::size_t columns, const kernels::StencilKernels& kernels)
      : sums_(sums), columns_(columns), kernels_(kernels) {}

  void open(const RowIndex&) {}
  void fill(const SampledColumns& columns, std::size_t, const double* mean, double scale, double* out) {
    constexpr double kOne = 1;
    // The sums begin with the first of all columns.
    const double* const row = sums_ - columns.first;
    add_feature<double>(columns, &row, &kOne, 1, mean, scale, kernels_, out);
    sums_ += columns_;
  }

 private:
  const double* sums_;
  std::size_t columns_;
  const kernels::StencilKernels& kernels_;
};

class PredictorFit {
 public:
  /// `room` has the samples.
  PredictorFit(const LevelAxes& axes, unsigned level, const ClassRows& rows, const GroupList& list,
               const LevelsFitting& how, FitRoom& room, LevelsModel& model)
      : axes_(axes),
        level_(level),
        rows_(rows),
        list_(list),
        how_(how),
        kernels_(how.kernels),
        room_(room),
        model_(model) {
    for (std::size_t g = 0; g < list.count; ++g) taps_[g] = list.groups[g].pair ? 2 : 1;
    for (const std::uint32_t n : room.filled) samples_ += n;
  }

  void run() {
    const std::size_t c = rows_.parity_class;
    Predictor& predictor = model_.predictor(level_, rows_.later, c);
    const bool coarser = level_ + 1 < axes_.top() && axes_.exists(c, level_ + 1);
    if (list_.count == 0 || rows_.rows == 0) {
      predictor = {};
      if (coarser) take_coarser(axes_, level_, rows_.later, c, model_);
      return;
    }
    if (coarser) {
      take_coarser(axes_, level_, rows_.later, c, model_);
      consider(predictor, 1);
    }
    for (std::uint8_t kind = 0; kind < kFitted; ++kind) {
      if (!kind_possible(axes_, kind, c, rows_.later)) continue;
      // The only cubic is its own mean.
      if (kind > 0 && kind < 5 && std::popcount(c) == 1) continue;
      Predictor candidate;
      candidate.kind = kind;
      candidate.weights = fixed_weights(axes_, kind, c, list_, model_.format.weight_bits);
      consider(candidate, 4);
    }
    if (how_.parts.weights && samples_ >= kMinSamplesPerGroup * list_.linear &&
        kind_possible(axes_, kFitted, c, rows_.later)) {
      fit({});
      if (axes_.given > 0) fit({.double_steps = false});
      if (list_.count > list_.linear && samples_ >= kMinSamplesPerGroup * list_.count) fit({.edges = true});
    }
    predictor = best_;
  }
  /// Takes a fit of all groups, a network's among them, where it costs clearly less than another predictor.
  void run_network(std::uint64_t other_cost) {
    Predictor& predictor = model_.predictor(level_, rows_.later, rows_.parity_class);
    best_ = predictor;
    best_cost_ = other_cost - other_cost / kNetworkGain;
    if (samples_ >= kMinSamplesPerGroup * list_.count) fit({.edges = true});
    predictor = best_;
  }
  std::uint64_t best_cost() const { return best_cost_; }

 private:
  const double* block(std::size_t b) const { return room_.block(b, list_.count); }

  /// Coefficients of the features that weights amount to.
  std::array<double, kMaxGroups> coefficients(const GroupWeights& weights) const {
    const double one = std::ldexp(1.0, static_cast<int>(model_.format.weight_bits));
    std::array<double, kMaxGroups> u{};
    std::int64_t sum = 0;
    for (std::size_t g = 0; g < list_.count; ++g) {
      u[g] = static_cast<double>(weights[g] * taps_[g]) / one;
      if (list_.groups[g].keeps_level()) sum += std::int64_t{weights[g]} * taps_[g];
    }
    u[0] = static_cast<double>(sum) / one - 1;
    return u;
  }
  /// What a prediction leaves of the targets of a block.
  void left_of(std::size_t b, const std::array<double, kMaxGroups>& u, std::array<double, kSampleBlock>& left) {
    kernels_.fit.unexplained(block(b), u.data(), list_.count, left.data());
  }

  /// Cost of residuals: about log2 of large ones, little for those well below a code.
  void consider(const Predictor& candidate, std::uint64_t stored_bits) {
    const auto u = coefficients(candidate.weights);
    alignas(64) std::array<double, kSampleBlock> left;  // NOLINT: left_of sets it
    std::uint64_t cost = 0;
    for (std::size_t b = 0; b < room_.filled.size(); ++b) {
      left_of(b, u, left);
      // What is behind the samples of a block is 0 and costs nothing.
      cost += kernels_.fit.left_cost(left.data());
    }
    const std::uint64_t total = std::uint64_t{rows_.rows} * rows_.columns;
    if (samples_ > 0)
      cost = static_cast<std::uint64_t>(static_cast<double>(cost) *
                                        (static_cast<double>(total) / static_cast<double>(samples_)));
    cost += stored_bits << 12;
    if (cost >= best_cost_) return;
    best_cost_ = cost;
    best_ = candidate;
  }

  /// Beside a reference there are many groups, which may say the same.
  bool is_double_step(std::size_t g) const {
    const Offset& offset = list_.groups[g].offset;
    return offset[0] != 0 && std::count(offset.begin(), offset.end(), 0) < static_cast<std::ptrdiff_t>(kMaxAxes) - 2;
  }

  /// Which groups may have a weight.
  struct Fitted {
    bool double_steps = true;  ///< those that go into the reference along two axes
    bool edges = false;        ///< those that are not linear
  };
  bool pinned(std::size_t g, const Fitted& fitted) const {
    return (!fitted.double_steps && is_double_step(g)) || (!fitted.edges && g >= list_.linear);
  }

  void fit(const Fitted& fitted) {
    const std::size_t unknowns = list_.count;
    const std::size_t width = unknowns + 1;
    const auto prior = coefficients(fixed_weights(axes_, 0, rows_.parity_class, list_, model_.format.weight_bits));
    std::array<double, kMaxGroups> u = prior;
    alignas(64) std::array<double, kSampleBlock> weights;  // NOLINT: set below
    alignas(64) std::array<double, kSampleBlock> left;     // NOLINT: left_of sets it
    SquareSums sums;
    double total = 0;
    for (std::size_t round = 0; round < (how_.effort >= Effort::low ? 1 : kRounds); ++round) {
      sums.clear(width);
      total = 0;
      for (std::size_t b = 0; b < room_.filled.size(); ++b) {
        left_of(b, u, left);
        total += kernels_.fit.left_weights(left.data(), room_.filled[b], weights.data());
        kernels_.normal_sums(block(b), weights.data(), width, sums.data());
      }
      // What is fitted is the change of the prior's coefficients: the target is what the prior leaves.
      for (std::size_t k = 0; k < unknowns; ++k)
        for (std::size_t g = 0; g < unknowns; ++g)
          sums.at(unknowns, k) -= prior[g] * (g <= k ? sums.at(k, g) : sums.at(g, k));
      if (!solve(sums, prior, total * kRidge, fitted, u)) return;
    }
    Predictor candidate;
    const bool network = list_.linear > 0 && list_.groups[list_.linear - 1] == kNetworkGroup;
    candidate.kind = network ? static_cast<std::uint8_t>(PredictorKind::network) : kFitted;
    if (round_weights(u, candidate.weights)) {
      candidate.edges = stored_count(candidate.weights) > list_.linear;
      return consider(candidate, stored_bits(candidate.weights));
    }
    if (axes_.given == 0) return;
    // Many weights beside a reference may be larger together than they may be: a stronger pull makes them smaller.
    for (double pull = kRidge; pull < 64; pull *= 4) {
      if (!solve(sums, prior, total * pull, fitted, u)) return;
      if (round_weights(u, candidate.weights)) return consider(candidate, stored_bits(candidate.weights));
    }
  }

  /// Adds a pull towards the prior, which has no weight for groups that it does not know, and solves.
  bool solve(SquareSums& sums, const std::array<double, kMaxGroups>& prior, double pull, const Fitted& fitted,
             std::array<double, kMaxGroups>& u) const {
    constexpr double kPinned = 1e9;
    for (std::size_t k = 0; k < list_.count; ++k)
      sums.at(k, k) += pinned(k, fitted) ? kPinned * (pull + sums.at(k, k)) : pull;
    std::array<double, kMaxGroups> change{};
    if (!solve_symmetric(sums, list_.count, change.data())) return false;
    for (std::size_t k = 0; k < list_.count; ++k) u[k] = prior[k] + change[k];
    return true;
  }

  bool round_weights(const std::array<double, kMaxGroups>& u, GroupWeights& weights) const {
    const double one = std::ldexp(1.0, static_cast<int>(model_.format.weight_bits));
    if (!(std::fabs(u[0]) < 3)) return false;
    std::int64_t sum = 0;
    std::int64_t magnitudes = 0;
    for (std::size_t g = 1; g < list_.count; ++g) {
      const double w = u[g] * one / taps_[g];
      if (!(std::fabs(w) < 8 * one)) return false;
      weights[g] = static_cast<std::int32_t>(std::lrint(w));
      if (list_.groups[g].keeps_level()) sum += std::int64_t{weights[g]} * taps_[g];
    }
    // The first group takes up what rounding did to the sum: levels are kept.
    weights[0] = static_cast<std::int32_t>((std::lrint((1 + u[0]) * one) - sum) / taps_[0]);
    for (std::size_t g = 0; g < list_.count; ++g) magnitudes += std::abs(std::int64_t{weights[g]}) * taps_[g];
    return magnitudes <= std::int64_t{1} << (model_.format.weight_bits + kLevelWeightSumBits);
  }

  std::size_t stored_count(const GroupWeights& weights) const {
    for (std::size_t g = list_.linear; g < list_.count; ++g)
      if (weights[g] != 0) return list_.count;
    return list_.linear;
  }
  std::uint64_t stored_bits(const GroupWeights& weights) const {
    std::uint64_t least = UINT64_MAX;
    for (unsigned order = 0; order < 16; ++order) {
      std::uint64_t bits = 8;
      for (std::size_t g = 0; g < stored_count(weights); ++g)
        bits += golomb_bits(kernels::zigzag(static_cast<std::uint32_t>(weights[g])), order);
      least = std::min(least, bits);
    }
    return least;
  }

  const LevelAxes& axes_;
  unsigned level_;
  const ClassRows& rows_;
  const GroupList& list_;
  const LevelsFitting& how_;
  const kernels::StencilKernels& kernels_;
  FitRoom& room_;
  LevelsModel& model_;
  std::array<int, kMaxGroups> taps_{};
  std::size_t samples_ = 0;
  Predictor best_;
  std::uint64_t best_cost_ = UINT64_MAX;
};

}  // namespace

template <class Value>
void choose_predictor(const LevelGridOf<Value>& grid, const ClassRows& rows, const CodePlaces& places,
                      const LevelTargets& targets, const GroupList& list, bool network, const LevelsFitting& how,
                      EdgeRows<Value>& edges, FitRoom& room, LevelsModel& model) {
  const auto gather = [&](const GroupList& groups) {
    room.filled.clear();
    if (groups.count > 0 && rows.rows > 0)
      gather_samples(grid.axes(), grid.level(), rows, places, targets, groups, how, model, room,
                     GridFeatures<Value>(grid, rows.parity_class, groups, edges, how.kernels));
  };
  gather(list);
  PredictorFit fit(grid.axes(), grid.level(), rows, list, how, room, model);
  fit.run();
  if (!network || rows.rows == 0) return;
  const GroupList with_network = groups_of_kind(list, static_cast<std::uint8_t>(PredictorKind::network));
  gather(with_network);
  PredictorFit(grid.axes(), grid.level(), rows, with_network, how, room, model).run_network(fit.best_cost());
}

SampledRows predictor_rows(const ClassRows& rows, Effort effort) { return list_rows(rows, predictor_samples(effort)); }

void choose_predictor_from(const double* sums, const LevelAxes& axes, unsigned level, const ClassRows& rows,
                           const CodePlaces& places, const LevelTargets& targets, const GroupList& list,
                           const LevelsFitting& how, FitRoom& room, LevelsModel& model) {
  room.filled.clear();
  if (list.count > 0 && rows.rows > 0)
    gather_samples(axes, level, rows, places, targets, list, how, model, room,
                   SummedFeatures(sums, sampled_columns(rows), how.kernels));
  PredictorFit(axes, level, rows, list, how, room, model).run();
}

template void choose_predictor(const LevelGridOf<double>&, const ClassRows&, const CodePlaces&, const LevelTargets&,
                               const GroupList&, bool, const LevelsFitting&, EdgeRows<double>&, FitRoom&, LevelsModel&);
template void choose_predictor(const LevelGridOf<std::int32_t>&, const ClassRows&, const CodePlaces&,
                               const LevelTargets&, const GroupList&, bool, const LevelsFitting&,
                               EdgeRows<std::int32_t>&, FitRoom&, LevelsModel&);
}  // namespace quern::codec::stencil

// Least squares of what was predicted and coded against what is around it.
#include "codecs/stencil/levels/context_fit.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "codecs/stencil/least_squares/solve.h"

namespace quern::codec::stencil {
namespace {

using kernels::kSampleBlock;

constexpr SampleLimits kContextSamples{1024, 3072};
constexpr SampleLimits kLowestContextSamples{768, 768};
// Of a level: but at the finest one, classes share their weights among levels.
constexpr SampleLimits kLowestCoarserSamples{192, 384};
constexpr std::size_t kFewContextSamples = 96;  // of a class, not worth weights
constexpr std::size_t kContextRounds = 2;       // of reweighting
constexpr float kSpreadUnit = 1.0f / (1u << kSpreadBits);

const SampleLimits& context_samples(Effort effort, unsigned level) {
  if (effort != Effort::lowest) return kContextSamples;
  return level == 0 ? kLowestContextSamples : kLowestCoarserSamples;
}
/// What the weight of a feature mostly comes to.
double usual_weight(std::size_t feature) {
  if (feature == kAboveFeature) return 0.06;
  if (feature == kBackFeature || feature == kPlaneFeature) return 0.2;
  if (feature >= kBendFeature && feature < kSlopeFeature) return 0.08;
  if (feature >= kSlopeFeature && feature < kChangeFeature) return 0.005;
  if (feature < kAboveFeature && std::popcount(feature) == 1) return 0.08;
  return 0.02;
}
constexpr double kUsualConstant = 0.002;

/// Whether few of many points are samples, and nearly all of those are 0: then the few that are not say little.
bool say_little(const ContextSamples& samples) {
  constexpr std::size_t kFew = 32;
  constexpr std::size_t kPoints = 8;  // for each sample
  if (samples.points < kPoints * samples.count()) return false;
  std::size_t coded = 0;
  for (const ContextSamples::Block& block : samples.blocks) {
    const float* const magnitudes = block.rows + (samples.width() - 1) * kSampleBlock;
    coded += block.samples - static_cast<std::size_t>(std::count(magnitudes, magnitudes + block.samples, 0.0f));
  }
  return coded < kFew;
}

/// Adds samples in which one feature alone is 1, with the magnitude that its weight mostly makes of it.
void lean_to_usual(const FeatureList& features, std::size_t skipped, SquareSums& sums) {
  constexpr double kSamples = 2;
  const std::size_t count = features.count - skipped;
  for (std::size_t i = 0; i <= count; ++i) {
    const double usual = i < count ? usual_weight(features.list[i]) : kUsualConstant;
    const double weight = kSamples / (usual * usual + usual);
    sums.at(i, i) += weight;
    sums.at(count + 1, i) += weight * usual;
  }
}

}  // namespace

FeatureList fitted_features(const LevelAxes& axes, unsigned level, std::size_t parity_class, bool later,
                            Effort effort) {
  const FeatureList all(axes, level, parity_class, later);
  if (effort != Effort::lowest) return all;
  FeatureList fitted;
  for (std::size_t i = 0; i < all.count; ++i)
    if (all.list[i] < kSlopeFeature || all.list[i] >= kChangeFeature) fitted.list[fitted.count++] = all.list[i];
  return fitted;
}

std::size_t ContextSamples::count() const {
  std::size_t total = 0;
  for (const Block& block : blocks) total += block.samples;
  return total;
}

float* ContextSamples::add(std::size_t samples, SampleMemory& memory) {
  if (blocks.empty() || blocks.back().samples + samples > kSampleBlock) {
    const std::size_t elems = width() * kSampleBlock;
    blocks.push_back({memory.take<float>(elems), 0});
    std::fill_n(blocks.back().rows, elems, 0.0f);
  }
  float* const at = blocks.back().rows + blocks.back().samples;
  blocks.back().samples += samples;
  return at;
}

template <class Value>
void add_context_samples(const LevelGridOf<Value>& grid, const ClassRows& rows, const CodePlaces& places,
                         const LevelTargets& targets, const LevelsModel& model, const LevelsFitting& how,
                         const SampleRoom& room, ContextSamples& samples) {
  if (rows.rows == 0) return;
  samples.points += rows.rows * rows.columns;
  const kernels::StencilKernels& kernels = how.kernels;
  const std::size_t c = rows.parity_class;
  const FeatureList own(grid.axes(), grid.level(), c, rows.later);
  const auto end = own.list.begin() + static_cast<std::ptrdiff_t>(own.count);
  // Of each feature the sources of rows away from the border.
  std::array<PlannedTaps<std::uint32_t>, kFeatures> planned;  // NOLINT: set where the class has the feature
  for (std::size_t i = 0; i < own.count; ++i)
    if (counts_magnitudes(own.list[i]))
      plan_feature(grid, {c, {}, grid.level(), rows.later}, own.list[i], planned[own.list[i]]);
  MagnitudeSourcesOf<Value> sources;
  MagnitudeSourcesOf<double> spread;
  spread.add(room.spread, 1);
  for_sampled_rows(rows, samples_of(rows, context_samples(how.effort, grid.level())), [&](std::size_t row) {
    ContextRow place{c, grid.index_of(c, row), grid.level(), rows.later};
    const std::size_t code = places.of(c, row);
    // What the row's elements were predicted as.
    kernels.fit.of<Value>().predictions(grid.value_row(c, place.index, {}), targets.codes + code,
                                        static_cast<double>(model.quantum(grid.level())), rows.columns, room.predicted);
    const SampledColumns columns(rows, row, targets.special == nullptr ? nullptr : targets.special + code);
    const bool inside = grid.inside(place.index);
    float* const block = samples.add(columns.count, room.memory);
    // The sampled columns' sums of what sources are, which end as the columns' own.
    const auto add = [&](auto& from, const auto sum, float scale, float* to) {
      if (columns.gaps) {
        for (std::size_t t = 0; t < from.count; ++t)
          columns.each(from.rows[t], [&](std::size_t s, std::uint32_t v) {
            to[s] += static_cast<float>(static_cast<std::int32_t>(v)) * scale;
          });
        return;
      }
      for (std::size_t t = 0; t < from.count; ++t) from.rows[t] += columns.first;
      sum(from.rows.data(), from.count, scale, columns.count, to);
    };
    const auto add_magnitudes = [&](float* to) { add(sources, kernels.fit.of<Value>().magnitude_sums, 1, to); };
    for (std::size_t i = 0; i < samples.features.count; ++i) {
      const std::size_t f = samples.features.list[i];
      float* const to = block + i * kSampleBlock;
      if (std::find(own.list.begin(), end, f) == end) continue;  // stays 0
      if (!counts_magnitudes(f)) {
        std::fill_n(room.spread, rows.columns, 0u);
        add_spread(grid, place, f, room.predicted, model.format.fraction_bits, 1, kernels, room.spread);
        spread.rows[0] = room.spread;
        add(spread, kernels.fit.wide.magnitude_sums, kSpreadUnit, to);
        continue;
      }
      if (inside && row_has(grid.axes(), place.index, f)) {
        grid.planned_sources(place.index, planned[f], sources);
      } else {
        sources.count = 0;
        feature_sources(grid, place, f, 1, sources);
      }
      add_magnitudes(to);
    }
    float* const constant = block + samples.features.count * kSampleBlock;
    std::fill_n(constant, columns.count, 1.0f);
    sources.count = 0;
    sources.add(grid.magnitude_row(c, place.index, {}), 1);
    add_magnitudes(constant + kSampleBlock);
  });
}

SampledRows context_rows(const ClassRows& rows, Effort effort) { return list_rows(rows, context_samples(effort, 0)); }

void add_context_samples_from(const std::uint64_t* numbers, const ClassRows& rows, const CodePlaces& places,
                              const std::uint8_t* special, Effort effort, SampleMemory& memory,
                              ContextSamples& samples) {
  if (rows.rows == 0) return;
  samples.points += rows.rows * rows.columns;
  const std::size_t all = sampled_columns(rows);
  const auto take = [&](const SampledColumns& columns, float scale, float* to) {
    columns.each(numbers - columns.first, [&](std::size_t s, std::uint64_t n) {
      to[s] = static_cast<float>(static_cast<std::int32_t>(n)) * scale;
    });
    numbers += all;
  };
  for_sampled_rows(rows, samples_of(rows, context_samples(effort, 0)), [&](std::size_t row) {
    const SampledColumns columns(rows, row, special == nullptr ? nullptr : special + places.of(rows.parity_class, row));
    float* const block = samples.add(columns.count, memory);
    for (std::size_t i = 0; i < samples.features.count; ++i)
      take(columns, counts_magnitudes(samples.features.list[i]) ? 1 : kSpreadUnit, block + i * kSampleBlock);
    float* const constant = block + samples.features.count * kSampleBlock;
    std::fill_n(constant, columns.count, 1.0f);
    take(columns, 1, constant + kSampleBlock);
  });
}

template void add_context_samples(const LevelGridOf<double>&, const ClassRows&, const CodePlaces&, const LevelTargets&,
                                  const LevelsModel&, const LevelsFitting&, const SampleRoom&, ContextSamples&);
template void add_context_samples(const LevelGridOf<std::int32_t>&, const ClassRows&, const CodePlaces&,
                                  const LevelTargets&, const LevelsModel&, const LevelsFitting&, const SampleRoom&,
                                  ContextSamples&);

ContextWeights fit_contexts(const ContextSamples& samples, const LevelsFitting& how) {
  // The constant alone is fitted from the last two rows of each block.
  const std::size_t skipped = how.parts.contexts ? 0 : samples.features.count;
  const std::size_t features = samples.features.count - skipped;
  const std::size_t unknowns = features + 1;
  const std::size_t width = unknowns + 1;
  std::array<double, kFeatures + 1> weights{};
  weights.fill(0.4 / static_cast<double>(unknowns));
  weights[features] = 0.1;
  alignas(64) std::array<double, (kFeatures + 2) * kSampleBlock> rows;  // NOLINT: set below
  alignas(64) std::array<double, kSampleBlock> sample_weights;          // NOLINT: set below
  const bool lean = say_little(samples);
  SquareSums sums;
  for (std::size_t round = 0; round < kContextRounds; ++round) {
    sums.clear(width);
    for (const ContextSamples::Block& block : samples.blocks) {
      how.kernels.fit.context_samples(block.rows + skipped * kSampleBlock, width, weights.data(), block.samples,
                                      rows.data(), sample_weights.data());
      how.kernels.normal_sums(rows.data(), sample_weights.data(), width, sums.data());
    }
    if (lean) lean_to_usual(samples.features, skipped, sums);
    if (!solve_non_negative(sums, unknowns, weights.data())) break;
  }
  ContextWeights result;
  result.present = true;
  const auto fixed = [](double w) {
    const double scaled = w * std::ldexp(1.0, coding::kContextBits);
    return static_cast<std::uint16_t>(scaled < coding::kMaxContextWeight ? std::lrint(scaled)
                                                                         : long{coding::kMaxContextWeight});
  };
  for (std::size_t i = 0; i < features; ++i) result.weights[samples.features.list[i]] = fixed(weights[i]);
  result.constant = fixed(weights[features]);
  return result;
}

void fit_class_contexts(std::size_t set, bool later, std::size_t parity_class, const LevelsFitting& how,
                        ContextSamples& samples, LevelsModel& model) {
  if (samples.count() >= kFewContextSamples)
    model.contexts[set][later ? 1 : 0][parity_class] = fit_contexts(samples, how);
  samples.blocks.clear();
}

}  // namespace quern::codec::stencil

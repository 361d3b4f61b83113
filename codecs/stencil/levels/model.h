// What a chunk in levels stores besides residuals: format of values, predictors of every class, context weights,
// distributions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/levels/axes.h"
#include "codecs/stencil/levels/context.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/taps.h"
#include "codecs/stencil/levels/value_format.h"
#include "codecs/stencil/networks/chunk_networks.h"
#include "coding/context.h"
#include "coding/distributions.h"

namespace quern::codec::stencil {

/// Magnitudes of a class's weights sum to at most 2^this, pairs counted twice.
inline constexpr unsigned kLevelWeightSumBits = 2;

/// How a class of a level is predicted.
struct Predictor {
  std::uint8_t kind = 0;    ///< PredictorKind
  bool as_coarser = false;  ///< stored as: like the class of the next coarser level
  bool edges = false;       ///< of kind `fitted`: groups that are not linear have weights, too
  GroupWeights weights{};   ///< in the order of groups_of()
};

/// Coarse levels may be coded more tightly than the bound asks for: points between them are predicted the better, and
/// the mean error falls. In sixteenths of a step, for levels 0, 1, 2 and all above.
inline constexpr unsigned kTightenings = 4;
inline constexpr std::array<std::array<std::uint8_t, 4>, kTightenings> kLevelSteps{
    {{16, 16, 16, 16}, {16, 14, 13, 12}, {16, 13, 10, 8}, {16, 11, 7, 5}}};

/// What a level's residuals count, in units of values, which are 2^-fraction_bits of a step.
constexpr std::int64_t level_quantum(unsigned fraction_bits, std::uint8_t tightening, unsigned level) {
  const std::int64_t step = std::int64_t{1} << fraction_bits;
  return std::max<std::int64_t>(1, step * kLevelSteps[tightening][std::min(level, 3u)] / 16);
}

/// Levels that share context weights: the finest, and all others.
inline constexpr std::size_t kContextSets = 2;
constexpr std::size_t context_set(unsigned level) { return level == 0 ? 0 : 1; }

struct LevelsModel {
  /// Of the stream's model; null: no class has a network. Not stored in chunks.
  const ChunkNetworks* networks = nullptr;
  LevelsValueFormat format;
  Border border = Border::mirrored;
  std::uint8_t tightening = 0;  ///< row of kLevelSteps
  /// For each level, first or later planes, and class.
  Predictor* predictors = nullptr;
  std::array<std::array<std::array<ContextWeights, kParityClasses>, 2>, kContextSets> contexts{};
  coding::Distributions distributions{};

  std::int64_t quantum(unsigned level) const { return level_quantum(format.fraction_bits, tightening, level); }

  static std::size_t predictor_count(const LevelAxes& axes) { return (axes.top() + 1) * 2 * kParityClasses; }
  Predictor& predictor(unsigned level, bool later, std::size_t parity_class) const {
    return predictors[(level * 2 + (later ? 1 : 0)) * kParityClasses + parity_class];
  }
};

/// Gives a predictor that is like the coarser level's the weights it then has.
void take_coarser(const LevelAxes& axes, unsigned level, bool later, std::size_t parity_class, LevelsModel& model);

/// The weights that a class's contexts use: its own, else those of other planes or levels, else none.
const ContextWeights& context_weights(const LevelsModel& model, unsigned level, bool later, std::size_t parity_class);

void write_levels_model(const LevelsModel& model, const LevelAxes& axes, Vector<std::uint8_t>& out);
/// Reads everything but the predictors' room, which the caller gives. `corrupt` when a rule is broken.
Status read_levels_model(std::span<const std::uint8_t>& bytes, const LevelAxes& axes, LevelsModel& model);

}  // namespace quern::codec::stencil

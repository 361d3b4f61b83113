// From counts of tokens in context levels to the distributions that are stored.
#pragma once

#include <array>
#include <cstdint>

#include "codecs/stencil/model/model.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::codec::stencil {

/// Levels of fewer symbols do not pay for their numbers.
inline constexpr std::uint32_t kFewSymbols = 40;

using LevelCounts = std::array<std::array<std::uint32_t, kernels::kResidualTokens>, kLevels>;

/// Sets model.levels; levels of few symbols are left to their neighbours. Returns the bits, in units of 2^-12, that all
/// symbols cost with what their tokens leave open. Integer arithmetic, ties to the lower index.
std::uint64_t fit_levels(LevelCounts& counts, ChunkModel& model);

}  // namespace quern::codec::stencil

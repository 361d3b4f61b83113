// Residuals as symbols of rANS: putting one into a state, and taking one from a source through a table of its level.
#pragma once

#include "kernels/entropy/residual_encode.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/entropy/token_table.h"
#include "kernels/stencil/cpu/stencil.h"

namespace quern::codec::stencil {

using kernels::kNoSymbol;
using kernels::kResidualWords;
using kernels::kTokenPlaces;
using kernels::put_symbol;
using kernels::ResidualEntries;
using kernels::take_residual;
using kernels::take_zero;
using kernels::TokenTable;

/// Words beyond those of a chunk that room for lanes has. Chunks are mostly powers of two: with an odd number of cache
/// lines more, what lanes write to lies in different sets of a cache.
inline constexpr std::size_t kSpareWords = kernels::kMostResidualLanes * 96;

}  // namespace quern::codec::stencil

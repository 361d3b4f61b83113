// Residuals as symbols of rANS: putting one into a state, and taking one from a source through a table of its level.
#pragma once

#include "kernels/core/residual_put.h"
#include "kernels/core/residual_tokens.h"
#include "kernels/core/token_table.h"
#include "kernels/cpu/stencil.h"

namespace quern::codec::stencil {

using kernels::kNoSymbol;
using kernels::kResidualWords;
using kernels::kTokenPlaces;
using kernels::put_symbol;
using kernels::ResidualEntries;
using kernels::take_residual;
using kernels::take_zero;
using kernels::TokenTable;

}  // namespace quern::codec::stencil

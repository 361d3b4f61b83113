// Tables of tokens for every context level, for decoders and encoders of all layouts.
#pragma once

#include <array>

#include <quern/status.h>

#include "codecs/stencil/arena.h"
#include "codecs/stencil/model/model.h"
#include "codecs/stencil/model/residual_symbols.h"

namespace quern::codec::stencil {

/// Fills `tables`, one for each level, and says which serves each level: its own or a neighbour's. Fails with `corrupt`
/// when no level has a distribution.
Status fill_token_tables(const ChunkModel& model, TokenTable* tables, std::array<const TokenTable*, kLevels>& serving);

/// Room for the entries of all symbols.
inline ResidualEntries take_entries(Arena& arena) {
  return {arena.take<kernels::RansEncodeEntry>(kernels::kResidualSymbols),
          arena.take<std::uint32_t>(kernels::kResidualSymbols)};
}

/// Fills the entries of all symbols that may occur.
void fill_token_entries(const ChunkModel& model, const ResidualEntries& entries);

}  // namespace quern::codec::stencil

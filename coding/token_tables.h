// Distributions spread out for coding: tables that decoders look tokens up in, entries that encoders code symbols by.
#pragma once

#include <array>

#include <quern/status.h>

#include "coding/distributions.h"
#include "kernels/entropy/cpu/encode_streams.h"
#include "kernels/entropy/token_table.h"
#include "libcompress/core/arena.h"

namespace quern::coding {

/// The table that serves each context bin.
using ServingTables = std::array<const kernels::TokenTable*, kernels::kContextBins>;

/// Fills `tables`, room for kContextBins of them that the caller keeps, and says which serves each bin: its own or
/// another's. Fails with `corrupt` when no bin has a distribution.
Status fill_token_tables(const Distributions& distributions, kernels::TokenTable* tables, ServingTables& serving);

/// Room for the entries of all symbols; belongs to the arena.
inline kernels::ResidualEntries take_entries(Arena& arena) {
  return {arena.take<kernels::RansEncodeEntry>(kernels::kResidualSymbols),
          arena.take<std::uint32_t>(kernels::kResidualSymbols)};
}

/// Fills the entries of all symbols that may occur.
void fill_token_entries(const Distributions& distributions, const kernels::ResidualEntries& entries);

}  // namespace quern::coding

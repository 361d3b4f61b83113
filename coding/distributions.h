// The distributions of tokens, one for each context bin, and their stored form.
#pragma once

#include <array>
#include <cstdint>

#include <quern/status.h>

#include "kernels/entropy/context_bin.h"
#include "kernels/entropy/token_distribution.h"
#include "libcompress/format/bit_stream.h"

namespace quern::coding {

/// By context bin. A distribution of no tokens is absent: another bin's serves in its place.
using Distributions = std::array<kernels::TokenDistribution, kernels::kContextBins>;

/// The bin whose distribution codes each bin: itself, else the next present one below, else above; kContextBins if none
/// is present.
std::array<std::uint8_t, kernels::kContextBins> serving_bins(const Distributions& distributions);

/// Appends 12 bits for the first and last bin present, then 7 to 33 bits for each bin between them.
void write_distributions(const Distributions& distributions, BitWriter& writer);
/// Reads what write_distributions wrote; bins outside the stored range keep what they had. `corrupt` when a number is
/// out of range; bytes that are cut short are left to BitReader::failed.
Status read_distributions(BitReader& reader, Distributions& distributions);

}  // namespace quern::coding

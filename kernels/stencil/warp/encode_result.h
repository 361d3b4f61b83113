// What encoders on lanes count, and what they give back, in raster order and in levels.
#pragma once

#include <cstdint>

#include "kernels/common/lanes.h"
#include "kernels/common/number_elements.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/stencil/raster_encode_job.h"

namespace quern::kernels {

/// Bits of an element.
template <class X>
[[gnu::always_inline]] constexpr std::uint64_t load_element(const void* elements, Element type, std::uint64_t at,
                                                            std::size_t lane) {
  switch (element_bytes(type)) {
    case 1: return X::load(static_cast<const std::uint8_t*>(elements) + at, lane);
    case 2: return X::load(static_cast<const std::uint16_t*>(elements) + at, lane);
    case 4: return X::load(static_cast<const std::uint32_t*>(elements) + at, lane);
    default: return X::load(static_cast<const std::uint64_t*>(elements) + at, lane);
  }
}

/// A warp's share of the counts of symbols is set to 0.
template <class X, class Shared>
constexpr void clear_symbol_counts(std::uint32_t warp, std::uint32_t warps, Shared& shared) {
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < kContextBins * kResidualTokens;
         i += warps * kLanes)
      X::store(&shared.counts[i / kResidualTokens][i % kResidualTokens], lane, std::uint32_t{0});
  });
}

/// Counts of symbols, and how many exceptions warps have found. The chunk is left to the host when it is
/// `out_of_range`, a warp says so, or there are more exceptions than there is room for.
template <class X, class Shared>
constexpr void store_encode_result(RasterEncodeResult& result, bool out_of_range, std::uint32_t most_exceptions,
                                   std::uint32_t warp, std::uint32_t warps, const Shared& shared) {
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < kContextBins * kResidualTokens;
         i += warps * kLanes)
      X::store(&result.counts[i / kResidualTokens][i % kResidualTokens], lane,
               X::load(&shared.counts[i / kResidualTokens][i % kResidualTokens], lane));
    if (warp != 0 || lane != 0) return;
    std::uint32_t exceptions = 0;
    bool left = out_of_range;
    for (std::uint32_t w = 0; w < warps; ++w) {
      exceptions += X::load(shared.exceptions + w, lane);
      left = left || X::load(shared.out_of_range + w, lane) != 0;
    }
    X::store(&result.exceptions, lane, exceptions);
    X::store(&result.left, lane, left || exceptions > most_exceptions ? 1u : 0u);
  });
}

}  // namespace quern::kernels

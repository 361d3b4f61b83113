// The numbers that describe a block, and which distribution codes each of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/entropy/context_bin.h"
#include "models/block_model.h"

namespace quern::codec::autoencoder {

/// How a block is predicted; networks of the model follow, in its order.
enum Method : unsigned { kConstant = 0, kPlane = 1, kLorenzo = 2, kFirstNetwork = 3 };
inline constexpr unsigned kMostMethods = kFirstNetwork + models::kMostPredictors;

/// Values are whole numbers in units of step / 2^kFractionBits. Means of blocks are in units of step / 4, slopes of
/// planes in units of step / (4 extent of a block).
inline constexpr unsigned kFractionBits = 8;
inline constexpr unsigned kMeanShift = kFractionBits - 2;

/// What a block's mean is added to, and what its level and method are told by.
struct BlockHistory {
  std::int64_t mean = 0;
  unsigned level = 0;
  unsigned method = kLorenzo;
};

/// Bins of distributions: of means, slopes, methods (by the method of the block before), levels, latents.
inline constexpr std::uint32_t kMeanBin = 0;
inline constexpr std::uint32_t kSlopeBin = 1;
inline constexpr std::uint32_t kMethodBins = 2;
inline constexpr std::uint32_t kLevelBin = kMethodBins + kMostMethods;
inline constexpr std::uint32_t kLatentBins = kLevelBin + 1;

/// Bin of latent `i` of `count` of the network `predictor`: each network has its share of the bins.
constexpr std::uint32_t latent_bin(std::size_t predictor, std::size_t i, std::size_t count) {
  constexpr std::size_t kShare = (kernels::kContextBins - kLatentBins) / models::kMostPredictors;
  return static_cast<std::uint32_t>(kLatentBins + predictor * kShare + i * kShare / count);
}
static_assert(latent_bin(models::kMostPredictors - 1, 255, 256) < kernels::kContextBins);

}  // namespace quern::codec::autoencoder

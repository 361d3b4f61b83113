// The networks that are trained, in binary32: a linear map to latents and back, each with convolutions that refine it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "models/block_model.h"

namespace quern::codec::autoencoder::train {

struct NetworkOptions {
  std::array<std::uint32_t, 3> block{8, 8, 8};
  std::uint32_t latents = 16;
  std::uint32_t components = 32;  ///< of principal components beside the autoencoder
  std::uint32_t channels = 8;     ///< of convolutions; 0: no autoencoder
  double seconds = 60;
  std::uint64_t steps = UINT64_MAX;
  std::uint64_t seed = 1;
  std::function<void(double)> progress;  ///< of the share that is done
};

struct TrainedModel {
  models::BlockModel principal;   ///< principal components alone
  models::BlockModel both;        ///< and the autoencoder; no predictors where it was not trained
  models::BlockPredictor linear;  ///< principal components, as many as the autoencoder has latents
  double train_loss = 0;
  std::uint64_t steps = 0;
  double rounding_db = 0;  ///< what rounding to whole numbers takes from the PSNR of predictions
};

/// Trains on blocks that sample_blocks made. Principal components first; the autoencoder begins as those and is trained
/// for the mean absolute and square error with a sliced Wasserstein distance between its latents and a normal
/// distribution (Kolouri et al., "Sliced-Wasserstein auto-encoders", 2019); weights are rounded to 8 bits in the last
/// fifth of the time. Throws std::runtime_error where the blocks are too few, or numbers do not fit the engine.
TrainedModel train_blocks(const std::vector<float>& blocks, const NetworkOptions& options);

/// Mean square error of what the engine makes of blocks by a predictor, without quantizing latents.
double prediction_error(const models::BlockPredictor& predictor, const std::vector<float>& blocks, unsigned unit_bits);

}  // namespace quern::codec::autoencoder::train

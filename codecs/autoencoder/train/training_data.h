// Arrays of files as blocks to train and test on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "surrogate/train/training_arrays.h"

namespace quern::codec::autoencoder::train {

using surrogate::read_training_data;
using surrogate::TrainingArray;
using surrogate::TrainingData;

/// Blocks less their means, by half the ranges of their arrays, one after another: at most `most` of them from random
/// places, the same for the same seed. Places are where the codec has blocks, and others where `anywhere`.
std::vector<float> sample_blocks(const std::vector<TrainingArray>& arrays, const std::array<std::uint32_t, 3>& block,
                                 std::size_t most, bool anywhere, std::uint64_t seed);

}  // namespace quern::codec::autoencoder::train

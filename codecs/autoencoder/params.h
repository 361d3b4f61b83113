// What all chunks of an array share, as it is stored: blocks, and the model.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/models.h>
#include <quern/status.h>

#include "codecs/autoencoder/blocks.h"

namespace quern::codec::autoencoder {

/// Where the model is.
enum class ModelPlace : std::uint8_t {
  none = 0,
  outside = 1,   ///< whoever reads the stream has it; the stream has its id
  embedded = 2,  ///< the stream has its decoding half
};

struct Params {
  Extents block{1, 1, 1};
  ModelPlace place = ModelPlace::none;
  ModelId id{};                            ///< outside
  std::span<const std::uint8_t> embedded;  ///< a model file; belongs to who read or wrote the parameters
};

Vector<std::uint8_t> write_params(const Params& params);
/// `corrupt` when they break a rule. The model file is not looked into.
Result<Params> read_params(std::span<const std::uint8_t> bytes);

}  // namespace quern::codec::autoencoder

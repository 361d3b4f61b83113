// What all chunks of an array share, as it is stored: blocks, and the model.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/autoencoder/blocks.h"
#include "models/model_reference.h"

namespace quern::codec::autoencoder {

using models::ModelPlace;

struct Params : models::ModelReference {
  Extents block{1, 1, 1};
};

Vector<std::uint8_t> write_params(const Params& params);
/// `corrupt` when they break a rule. The model file is not looked into.
Result<Params> read_params(std::span<const std::uint8_t> bytes);

}  // namespace quern::codec::autoencoder

// A model ready to predict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/network/cpu/evaluate.h"
#include "kernels/network/rules.h"
#include "models/block_model.h"

namespace quern::codec::autoencoder {

/// The networks of a model, prepared. Immutable: threads share it. May throw std::bad_alloc.
struct PreparedModel {
  explicit PreparedModel(const models::BlockModel& model);

  struct Predictor {
    kernels::PreparedNetwork encoder;  ///< empty in models that only decode
    kernels::PreparedNetwork decoder;
    std::size_t latents() const { return decoder.inputs(); }
  };

  std::size_t block_elems = 0;
  std::uint8_t unit_bits = 0;
  std::vector<Predictor> predictors;
};

/// How the numbers of a network become units of values, and which steps its latents have; as stored in a chunk.
struct NetworkScale {
  std::uint32_t multiplier = 0;                                      ///< of outputs, then a shift; below 2^31
  unsigned shift = 0;                                                ///< 1 to 62
  std::array<std::uint16_t, models::kMostPredictors> latent_step{};  ///< 0: the chunk does not use the network

  bool used() const {
    for (const std::uint16_t step : latent_step)
      if (step != 0) return true;
    return false;
  }
  std::int64_t in_units(std::int16_t output) const {
    return (std::int64_t{output} * multiplier + (std::int64_t{1} << (shift - 1))) >> shift;
  }
};

/// Memory of one thread.
struct NetworkMemory {
  kernels::NetworkRoom encoder_room, decoder_room;
  std::vector<std::int16_t> in, out;
};

/// What network `number` makes of quantized latents, in units of values, less the block's mean. `out` has room for a
/// block. May throw std::bad_alloc the first time.
void predict_block(const PreparedModel& model, std::size_t number, const kernels::NetworkKernels& kernels,
                   const NetworkScale& scale, std::span<const std::int32_t> latents, NetworkMemory& memory,
                   std::int64_t* out);

}  // namespace quern::codec::autoencoder

// Latents to predictions.
#include "codecs/autoencoder/prepared_model.h"

namespace quern::codec::autoencoder {

PreparedModel::PreparedModel(const models::BlockModel& model)
    : block_elems(model.block_elems()), unit_bits(model.unit_bits) {
  for (const models::BlockPredictor& predictor : model.predictors) {
    predictors.emplace_back();
    if (!predictor.encoder.layers.empty()) predictors.back().encoder = kernels::PreparedNetwork(predictor.encoder);
    predictors.back().decoder = kernels::PreparedNetwork(predictor.decoder);
  }
}

void predict_block(const PreparedModel& model, std::size_t number, const kernels::NetworkKernels& kernels,
                   const NetworkScale& scale, std::span<const std::int32_t> latents, NetworkMemory& memory,
                   std::int64_t* out) {
  const PreparedModel::Predictor& predictor = model.predictors[number];
  constexpr std::int32_t kLimit = kernels::activation_limit(kernels::kMostActivationBits);
  memory.in.resize(latents.size());
  for (std::size_t i = 0; i < latents.size(); ++i)
    memory.in[i] = kernels::clamp_activation(std::int64_t{latents[i]} * scale.latent_step[number], kLimit);
  memory.out.resize(model.block_elems);
  predictor.decoder.run(kernels, memory.in, memory.decoder_room, memory.out);
  for (std::size_t i = 0; i < model.block_elems; ++i) out[i] = scale.in_units(memory.out[i]);
}

}  // namespace quern::codec::autoencoder

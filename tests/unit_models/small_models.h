// A model of two predictors for blocks of 4 x 8 values, made from a fixed generator.
#pragma once

#include "models/block_model.h"
#include "tests/unit_network/random_networks.h"

namespace quern::models::test {

inline kernels::Network dense_network(std::uint32_t from, std::uint32_t to, std::uint64_t seed) {
  kernels::test::Random random(seed);
  kernels::Network network;
  network.in.channels = from;
  network.in_bits = 14;
  kernels::NetworkLayer layer = kernels::test::plain_layer(kernels::LayerKind::dense);
  layer.out.channels = to;
  kernels::test::fill_rows(random, layer, to, from);
  network.layers = {layer};
  return network;
}

/// Latents to a grid of 2 x 4 places, a convolution, and its channels to places.
inline kernels::Network deep_decoder(std::uint32_t latents, std::uint64_t seed) {
  kernels::test::Random random(seed);
  kernels::Network network = dense_network(latents, 6 * 8, seed + 1);
  network.layers[0].out = {{1, 2, 4}, 6};
  kernels::NetworkLayer convolution = kernels::test::plain_layer(kernels::LayerKind::convolution);
  convolution.width = {1, 3, 3};
  convolution.out = {{1, 2, 4}, 4};
  kernels::test::fill_rows(random, convolution, 4, 54);
  network.layers.push_back(convolution);
  kernels::NetworkLayer unfold = kernels::test::plain_layer(kernels::LayerKind::depth_to_space);
  unfold.width = {1, 2, 2};
  network.layers.push_back(unfold);
  return network;
}

inline BlockModel small_model() {
  BlockModel model;
  model.block = {1, 4, 8};
  model.unit_bits = 12;
  model.record = R"({"seed": 1})";
  model.predictors.push_back(
      {BlockPredictorKind::principal_components, dense_network(32, 5, 1), dense_network(5, 32, 2)});
  model.predictors.push_back({BlockPredictorKind::autoencoder, dense_network(32, 3, 3), deep_decoder(3, 4)});
  for (BlockPredictor& p : model.predictors) {
    kernels::check_network(p.encoder);
    kernels::check_network(p.decoder);
  }
  return model;
}

}  // namespace quern::models::test

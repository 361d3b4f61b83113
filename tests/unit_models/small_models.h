// A model of two predictors for blocks of 4 x 8 values, made from a fixed generator.
#pragma once

#include <cmath>
#include <utility>

#include "models/block_model.h"
#include "models/quantize_rows.h"
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

/// One dense layer with these weights.
inline kernels::Network dense_of(const std::vector<double>& weights, std::uint32_t rows, double in_unit,
                                 double out_unit, unsigned in_bits) {
  const std::vector<double> bias(rows, 0.0);
  kernels::Network network;
  network.in.channels = static_cast<std::uint32_t>(weights.size() / rows);
  network.in_bits = static_cast<std::uint8_t>(in_bits);
  kernels::NetworkLayer layer = kernels::test::plain_layer(kernels::LayerKind::dense);
  layer.out.channels = rows;
  quantize_rows({weights, bias, in_unit, out_unit, in_bits}, layer);
  network.layers = {layer};
  kernels::check_network(network);
  return network;
}

/// A useful model: the cosines of lowest frequencies along each axis, fewer than `frequencies` of them, but the mean.
inline BlockModel cosine_model(std::array<std::uint32_t, 3> block, unsigned frequencies) {
  constexpr double kPi = 3.14159265358979323846;
  BlockModel model;
  model.block = block;
  model.unit_bits = 12;
  model.record = "{}";
  const std::size_t elems = model.block_elems();
  std::vector<std::vector<double>> basis;
  for (unsigned a = 0; a < std::min(frequencies, block[0]); ++a)
    for (unsigned b = 0; b < std::min(frequencies, block[1]); ++b)
      for (unsigned c = 0; c < std::min(frequencies, block[2]); ++c) {
        if (a + b + c == 0) continue;
        std::vector<double> v;
        double norm = 0;
        const auto wave = [&](unsigned k, std::uint32_t i, std::uint32_t n) {
          return std::cos(kPi * k * (i + 0.5) / n);
        };
        for (std::uint32_t z = 0; z < block[0]; ++z)
          for (std::uint32_t y = 0; y < block[1]; ++y)
            for (std::uint32_t x = 0; x < block[2]; ++x) {
              v.push_back(wave(a, z, block[0]) * wave(b, y, block[1]) * wave(c, x, block[2]));
              norm += v.back() * v.back();
            }
        for (double& w : v) w /= std::sqrt(norm);
        basis.push_back(std::move(v));
      }
  const auto latents = static_cast<std::uint32_t>(basis.size());
  std::vector<double> forward, backward(elems * latents);
  for (std::uint32_t k = 0; k < latents; ++k) {
    forward.insert(forward.end(), basis[k].begin(), basis[k].end());
    for (std::size_t i = 0; i < elems; ++i) backward[i * latents + k] = basis[k][i];
  }
  const double latent_unit = 4096 / std::sqrt(static_cast<double>(elems));
  model.predictors.push_back({BlockPredictorKind::principal_components,
                              dense_of(forward, latents, 4096, latent_unit, 15),
                              dense_of(backward, static_cast<std::uint32_t>(elems), latent_unit, 4096, 16)});
  return model;
}

}  // namespace quern::models::test

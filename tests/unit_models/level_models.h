// Models for levels, made by hand.
#pragma once

#include "models/level_model.h"
#include "tests/unit_network/random_networks.h"

namespace quern::models::test {

inline kernels::NetworkLayer point_layer(std::uint32_t channels) {
  kernels::NetworkLayer layer = kernels::test::plain_layer(kernels::LayerKind::convolution);
  layer.out.channels = channels;
  return layer;
}

/// Of the first two of the known points the larger one: the mean of them plus half the magnitude of their difference.
inline kernels::Network larger_of_two() {
  kernels::Network network;
  network.in.channels = 3;
  kernels::NetworkLayer first = point_layer(2);
  first.weights = {64, -64, 0, -64, 64, 0};
  first.bias = {0, 0};
  first.multipliers = {1 << 14, 1 << 14};
  first.shift = 20;  // the difference itself
  first.activation = kernels::Activation::relu;
  kernels::NetworkLayer second = point_layer(1);
  second.weights = {64, 64};
  second.bias = {0};
  second.multipliers = {1 << 14};
  second.shift = 18;  // times 4: half of it, from 12 bits of fraction to 15
  network.layers = {first, second};
  kernels::check_network(network);
  return network;
}

/// Of `taps` known points the larger one of two, by their numbers: half the magnitudes of difference and sum of their
/// distances from what they count from.
inline kernels::Network larger_of(std::uint32_t taps, std::uint32_t a, std::uint32_t b) {
  kernels::Network network;
  network.in.channels = taps + 1;
  kernels::NetworkLayer first = point_layer(4);
  first.weights.assign(4 * (taps + 1), 0);
  for (std::uint32_t row = 0; row < 4; ++row) {
    first.weights[row * (taps + 1) + a] = row % 2 == 0 ? 64 : -64;
    first.weights[row * (taps + 1) + b] = row == 0 || row == 3 ? -64 : 64;
  }
  first.bias.assign(4, 0);
  first.multipliers.assign(4, 1 << 14);
  first.shift = 20;
  first.activation = kernels::Activation::relu;
  kernels::NetworkLayer second = point_layer(1);
  second.weights = {64, 64, 64, -64};
  second.bias = {0};
  second.multipliers = {1 << 14};
  second.shift = 18;
  network.layers = {first, second};
  kernels::check_network(network);
  return network;
}

/// Networks of two axes for the classes that have neighbours along one axis.
inline LevelModel larger_model() {
  LevelModel model;
  model.axes = 2;
  model.record = R"({"seed": 1})";
  model.classes[1] = larger_of_two();
  model.classes[2] = larger_of_two();
  return model;
}

/// A network of two layers with weights from a fixed generator for each class that has as many known points.
inline LevelModel random_level_model(std::uint8_t axes, std::uint64_t seed) {
  kernels::test::Random random(seed);
  LevelModel model;
  model.axes = axes;
  for (std::size_t c = 1; c < std::size_t{1} << axes; ++c) {
    kernels::Network network;
    network.in.channels = 13;
    kernels::NetworkLayer first = point_layer(5);
    kernels::test::fill_rows(random, first, 5, 13);
    kernels::NetworkLayer second = point_layer(1);
    kernels::test::fill_rows(random, second, 1, 5);
    network.layers = {first, second};
    kernels::check_network(network);
    model.classes[c] = network;
  }
  return model;
}

}  // namespace quern::models::test

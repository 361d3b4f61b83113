// Models with deep features for the tests.
#pragma once

#include <gtest/gtest.h>

#include "surrogate/model.h"

namespace quern::test {

/// One convolution of width 1: channel c of a place is c + 1 times a sixteenth of the value there.
inline kernels::Network plain_patch_network(bool cubes) {
  kernels::NetworkLayer layer;
  layer.kind = kernels::LayerKind::convolution;
  layer.out.channels = static_cast<std::uint32_t>(surrogate::kDeepFeatures);
  layer.shift = 4;
  for (std::size_t c = 0; c < surrogate::kDeepFeatures; ++c) {
    layer.weights.push_back(static_cast<std::int8_t>(c + 1));
    layer.weights.push_back(0);  // of the channel that says how large the deviation is
    layer.bias.push_back(0);
    layer.multipliers.push_back(1);
  }
  kernels::Network network;
  network.in = surrogate::patch_shape(cubes);
  network.in_bits = surrogate::kPatchBits;
  network.layers.push_back(layer);
  EXPECT_EQ(kernels::check_network(network), nullptr);
  return network;
}

inline surrogate::PatchNetworks plain_patch_networks() {
  return {plain_patch_network(false), plain_patch_network(true)};
}

/// The columns of a layer and as many more, of weights 0.
inline void add_columns(surrogate::Layer& layer, std::uint32_t more) {
  std::vector<float> weights;
  for (std::uint32_t r = 0; r < layer.rows; ++r) {
    const auto row = layer.weights.begin() + static_cast<std::ptrdiff_t>(r * layer.columns);
    weights.insert(weights.end(), row, row + layer.columns);
    weights.resize(weights.size() + more);
  }
  layer.weights = std::move(weights);
  layer.columns += more;
}

/// The networks of `model` again, with deep features that count nothing.
inline surrogate::DeepPart idle_deep_part(const surrogate::Model& model) {
  constexpr auto kMore = static_cast<std::uint32_t>(surrogate::kDeepFeatures);
  surrogate::DeepPart deep{plain_patch_networks(), model.codecs, false};
  for (surrogate::CodecModel& codec : deep.codecs) {
    codec.mean.resize(codec.mean.size() + kMore);
    codec.scale.resize(codec.scale.size() + kMore);
    add_columns(codec.hidden[0], kMore);
    for (surrogate::Head& head : codec.experts) add_columns(head.direct, kMore);
    if (codec.experts.size() > 1) add_columns(codec.gate, kMore);
  }
  return deep;
}

}  // namespace quern::test

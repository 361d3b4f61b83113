// Networks and inputs from a fixed generator: what golden checksums of semantics version 1 are of. Frozen with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/network/network.h"

namespace quern::kernels::test {

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014, figure 17).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
  }
  std::int64_t within(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

inline NetworkLayer plain_layer(LayerKind kind) {
  NetworkLayer layer;
  layer.kind = kind;
  return layer;
}

/// Weights, biases and rescaling for a layer of known rows and columns.
inline void fill_rows(Random& random, NetworkLayer& layer, std::size_t rows, std::size_t columns) {
  for (std::size_t i = 0; i < rows * columns; ++i)
    layer.weights.push_back(static_cast<std::int8_t>(random.within(-127, 127)));
  for (std::size_t i = 0; i < rows; ++i) {
    layer.bias.push_back(static_cast<std::int32_t>(random.within(-100000, 100000)));
    layer.multipliers.push_back(static_cast<std::int32_t>(random.within(1 << 15, (1 << 18) - 1)));
  }
  layer.shift = static_cast<std::uint8_t>(random.within(24, 28));
  layer.activation = static_cast<Activation>(random.within(0, 2));
  layer.bits = static_cast<std::uint8_t>(random.within(10, 16));
}

inline NetworkLayer convolution(Random& random, const TensorShape& in, std::uint32_t channels) {
  NetworkLayer layer = plain_layer(LayerKind::convolution);
  for (std::size_t a = 0; a < 3; ++a) {
    layer.width[a] = in.extents[a] > 1 && random.within(0, 3) > 0 ? 3 : 1;
    layer.step[a] = in.extents[a] > 1 && random.within(0, 3) == 0 ? 2 : 1;
    layer.out.extents[a] = (in.extents[a] - 1) / layer.step[a] + 1;
  }
  layer.out.channels = channels;
  fill_rows(random, layer, channels, std::size_t{layer.width[0]} * layer.width[1] * layer.width[2] * in.channels);
  return layer;
}

/// The n-th network: two or three axes, every kind of layer among the first few of them.
inline Network random_network(std::uint64_t n) {
  Random random(n);
  Network network;
  const bool deep = n % 2 == 1;
  network.in.extents = {deep ? static_cast<std::uint32_t>(2 * random.within(1, 3)) : 1u,
                        static_cast<std::uint32_t>(2 * random.within(1, 6)),
                        static_cast<std::uint32_t>(2 * random.within(1, 9))};
  network.in.channels = static_cast<std::uint32_t>(random.within(1, 5));
  network.in_bits = static_cast<std::uint8_t>(random.within(12, 16));
  std::vector<NetworkLayer>& layers = network.layers;

  NetworkLayer fold = plain_layer(LayerKind::space_to_depth);
  fold.width = {static_cast<std::uint8_t>(deep ? 2 : 1), 2, 2};
  const std::uint32_t factor = deep ? 8 : 4;
  fold.out.channels = network.in.channels * factor;
  for (std::size_t a = 0; a < 3; ++a) fold.out.extents[a] = network.in.extents[a] / fold.width[a];
  layers.push_back(fold);
  layers.push_back(convolution(random, layers.back().out, static_cast<std::uint32_t>(random.within(1, 13))));
  NetworkLayer same = plain_layer(LayerKind::convolution);
  same.width = {1, 3, 3};
  same.out = layers.back().out;
  fill_rows(random, same, same.out.channels, std::size_t{9} * same.out.channels);
  layers.push_back(same);
  NetworkLayer sum = plain_layer(LayerKind::add);
  sum.other = 2;
  sum.bits = 13;
  sum.out = same.out;
  layers.push_back(sum);
  NetworkLayer both = plain_layer(LayerKind::concatenate);
  both.other = 3;
  both.out = sum.out;
  both.out.channels *= 2;
  layers.push_back(both);
  NetworkLayer more = convolution(random, both.out, 3 * factor);
  layers.push_back(more);
  NetworkLayer unfold = fold;
  unfold.kind = LayerKind::depth_to_space;
  unfold.out.channels = 3;
  for (std::size_t a = 0; a < 3; ++a) unfold.out.extents[a] = more.out.extents[a] * unfold.width[a];
  layers.push_back(unfold);
  if (n % 3 != 0) return network;
  NetworkLayer dense = plain_layer(LayerKind::dense);
  dense.out.extents = {1, 3, 2};
  dense.out.channels = static_cast<std::uint32_t>(random.within(1, 4));
  fill_rows(random, dense, dense.out.elems(), unfold.out.elems());
  layers.push_back(dense);
  return network;
}

/// Inputs of the n-th network; some lie beyond its limit.
inline std::vector<std::int16_t> random_inputs(const Network& network, std::uint64_t n) {
  Random random(~n);
  std::vector<std::int16_t> in(network.in.elems());
  for (std::int16_t& v : in) v = static_cast<std::int16_t>(random.within(-32768, 32767));
  return in;
}

}  // namespace quern::kernels::test

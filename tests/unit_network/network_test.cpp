// The engine of networks: golden checksums of version 1, a second evaluation that shares nothing with it, every
// instruction set, and refusals.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/network/cpu/evaluate.h"
#include "tests/unit_network/random_networks.h"

namespace quern::kernels {
namespace {

using test::random_inputs;
using test::random_network;

constexpr std::uint64_t kNetworks = 24;

/// CRC-32 as in zip files, bit by bit.
std::uint32_t crc_of(const std::vector<std::int16_t>& values) {
  std::uint32_t crc = ~0u;
  for (const std::int16_t value : values)
    for (unsigned bit = 0; bit < 16; ++bit) {
      const std::uint32_t low = (crc ^ (static_cast<std::uint16_t>(value) >> bit)) & 1;
      crc = crc >> 1 ^ (low != 0 ? 0xEDB88320u : 0u);
    }
  return ~crc;
}

Network checked(std::uint64_t n) {
  Network network = random_network(n);
  const char* const wrong = check_network(network);
  EXPECT_EQ(wrong, nullptr) << n << ": " << (wrong != nullptr ? wrong : "");
  return network;
}

std::vector<std::int16_t> evaluated(const Network& network, const std::vector<std::int16_t>& in, IsaLevel level) {
  const PreparedNetwork prepared(network);
  NetworkRoom room;
  std::vector<std::int16_t> out(prepared.outputs());
  prepared.run(network_kernels(level), in, room, out);
  prepared.run(network_kernels(level), in, room, out);  // room that was used before
  return out;
}

// From the document: tensors as functions of a place and a channel, each number worked out alone.

struct Plain {
  TensorShape shape;
  std::vector<long long> v;
  long long at(long long z, long long y, long long x, long long c) const {
    const auto inside = [](long long n, std::uint32_t extent) {
      return n < 0 ? 0 : n >= static_cast<long long>(extent) ? static_cast<long long>(extent) - 1 : n;
    };
    const long long place = (inside(z, shape.extents[0]) * shape.extents[1] + inside(y, shape.extents[1])) *
                                static_cast<long long>(shape.extents[2]) +
                            inside(x, shape.extents[2]);
    return v[static_cast<std::size_t>(place * shape.channels + c)];
  }
};

long long limited(long long v, unsigned bits) {
  const long long most = (1LL << (bits - 1)) - 1;
  return std::max(-most, std::min(most, v));
}

long long finished(const NetworkLayer& layer, std::size_t row, long long sum) {
  EXPECT_LT(sum < 0 ? -sum : sum, 1LL << 31);
  const long long unit = 1LL << layer.shift;
  const long long scaled = sum * layer.multipliers[row] + unit / 2;
  long long v = scaled / unit - (scaled % unit < 0 ? 1 : 0);
  if (layer.activation == Activation::relu && v < 0) v = 0;
  if (layer.activation == Activation::leaky && v < 0) v = -((-v + 7) / 8);
  return limited(v, layer.bits);
}

long long plain_output(const NetworkLayer& layer, const std::vector<Plain>& tensors, long long z, long long y,
                       long long x, long long c) {
  const Plain& in = tensors.back();
  const auto factor = [&](std::size_t a) { return static_cast<long long>(layer.width[a]); };
  switch (layer.kind) {
    case LayerKind::dense: {
      const auto row = static_cast<std::size_t>(
          ((z * layer.out.extents[1] + y) * layer.out.extents[2] + x) * layer.out.channels + c);
      long long sum = layer.bias[row];
      for (std::size_t i = 0; i < in.v.size(); ++i) sum += in.v[i] * layer.weights[row * in.v.size() + i];
      return finished(layer, row, sum);
    }
    case LayerKind::convolution: {
      const auto row = static_cast<std::size_t>(c);
      std::size_t w = layer.weights.size() / layer.out.channels * row;
      long long sum = layer.bias[row];
      for (long long i = 0; i < factor(0); ++i)
        for (long long j = 0; j < factor(1); ++j)
          for (long long k = 0; k < factor(2); ++k)
            for (std::uint32_t ch = 0; ch < in.shape.channels; ++ch)
              sum += layer.weights[w++] * in.at(z * layer.step[0] + i - factor(0) / 2,
                                                y * layer.step[1] + j - factor(1) / 2,
                                                x * layer.step[2] + k - factor(2) / 2, ch);
      return finished(layer, row, sum);
    }
    case LayerKind::depth_to_space: {
      const long long group = (z % factor(0) * factor(1) + y % factor(1)) * factor(2) + x % factor(2);
      return in.at(z / factor(0), y / factor(1), x / factor(2), group * layer.out.channels + c);
    }
    case LayerKind::space_to_depth: {
      const long long channel = c % in.shape.channels;
      const long long group = c / in.shape.channels;
      return in.at(z * factor(0) + group / (factor(1) * factor(2)), y * factor(1) + group / factor(2) % factor(1),
                   x * factor(2) + group % factor(2), channel);
    }
    case LayerKind::add: return limited(in.at(z, y, x, c) + tensors[layer.other].at(z, y, x, c), layer.bits);
    case LayerKind::concatenate:
      return c < in.shape.channels ? in.at(z, y, x, c) : tensors[layer.other].at(z, y, x, c - in.shape.channels);
  }
  return 0;
}

std::vector<std::int16_t> plainly_evaluated(const Network& network, const std::vector<std::int16_t>& in) {
  std::vector<Plain> tensors(1);
  tensors[0].shape = network.in;
  for (const std::int16_t v : in) tensors[0].v.push_back(limited(v, network.in_bits));
  for (const NetworkLayer& layer : network.layers) {
    Plain out{layer.out, {}};
    for (long long z = 0; z < layer.out.extents[0]; ++z)
      for (long long y = 0; y < layer.out.extents[1]; ++y)
        for (long long x = 0; x < layer.out.extents[2]; ++x)
          for (long long c = 0; c < layer.out.channels; ++c) out.v.push_back(plain_output(layer, tensors, z, y, x, c));
    tensors.push_back(std::move(out));
  }
  return {tensors.back().v.begin(), tensors.back().v.end()};
}

TEST(Network, RandomNetworks_AreAsTheDocumentSays) {
  for (std::uint64_t n = 0; n < kNetworks; ++n) {
    const Network network = checked(n);
    const auto in = random_inputs(network, n);
    const auto out = evaluated(network, in, IsaLevel::baseline);
    ASSERT_EQ(out, plainly_evaluated(network, in)) << n;
    EXPECT_NE(*std::max_element(out.begin(), out.end()), *std::min_element(out.begin(), out.end())) << n;
  }
}

TEST(Network, EveryInstructionSet_GivesTheSameNumbers) {
  for (std::uint64_t n = 0; n < 4 * kNetworks; ++n) {
    const Network network = checked(n);
    const auto in = random_inputs(network, n);
    const auto expected = evaluated(network, in, IsaLevel::baseline);
    for (const IsaLevel level : {IsaLevel::avx2, IsaLevel::avx512})
      if (isa_available(level)) {
        ASSERT_EQ(evaluated(network, in, level), expected) << n << isa_name(level);
      }
  }
}

/// Version 1 of the semantics for good.
TEST(Network, GoldenChecksums_OfVersion1) {
  static_assert(kNetworkSemantics == 1);
  const std::uint32_t golden[kNetworks] = {0x530C0E03, 0x8FC4B107, 0x269134E7, 0xBCDEA0B1, 0x6884B898, 0xE0C2A9A5,
                                           0x357114ED, 0x7A7DB0F5, 0xF2DF07A6, 0x5D6A44AC, 0xBD3972C1, 0x27551948,
                                           0x79D8D171, 0x79C49FA4, 0x1738E2EA, 0x4AEDC288, 0xC9E9E17E, 0x94D19AC5,
                                           0x48B7F3ED, 0xDB8E4E21, 0xC2C2A2B8, 0xFE1A1ADF, 0x293417AF, 0xCA8C093E};
  for (std::uint64_t n = 0; n < kNetworks; ++n) {
    const Network network = checked(n);
    EXPECT_EQ(crc_of(evaluated(network, random_inputs(network, n), best_isa())), golden[n]) << n;
  }
}

NetworkLayer one_row(std::int8_t weight, std::int32_t bias, std::size_t columns) {
  NetworkLayer layer;
  layer.weights.assign(columns, weight);
  layer.bias = {bias};
  layer.multipliers = {1 << 20};
  layer.shift = 40;
  return layer;
}

TEST(Network, SumsAtTheEdgeOfOverflow_AreRefusedOrExact) {
  // 516 * 127 * 32767 = 2147287044, 196603 less than 2^31 - 1.
  for (const std::int32_t more : {0, 1}) {
    Network network;
    network.in.channels = 516;
    network.layers = {one_row(127, 196603 + more, 516)};
    const char* const wrong = check_network(network);
    ASSERT_EQ(wrong == nullptr, more == 0);
    if (wrong != nullptr) continue;
    for (const std::int16_t value : {std::int16_t{32767}, std::int16_t{-32768}}) {
      const std::vector<std::int16_t> in(516, value);
      for (const IsaLevel level : {IsaLevel::baseline, best_isa()})
        EXPECT_EQ(evaluated(network, in, level), plainly_evaluated(network, in));
    }
  }
}

TEST(Network, NetworksThatBreakARule_AreRefused) {
  const auto refused = [](const auto& change) {
    Network network = random_network(3);
    change(network);
    return check_network(network) != nullptr;
  };
  EXPECT_FALSE(refused([](Network&) {}));
  EXPECT_TRUE(refused([](Network& n) { n.layers.clear(); }));
  EXPECT_TRUE(refused([](Network& n) { n.layers.resize(kMostLayers + 1, n.layers[0]); }));
  EXPECT_TRUE(refused([](Network& n) { n.in.extents[1] = 0; }));
  EXPECT_TRUE(refused([](Network& n) { n.in.extents = {1u << 20, 1u << 20, 1u << 20}; }));
  EXPECT_TRUE(refused([](Network& n) { n.in.channels = std::numeric_limits<std::uint32_t>::max(); }));
  EXPECT_TRUE(refused([](Network& n) { n.in_bits = 17; }));
  EXPECT_TRUE(refused([](Network& n) { n.in_bits = 0; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[0].width[2] = 3; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[1].width[2] = 2; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[1].step[2] = 0; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[1].shift = 0; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[1].shift = 63; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[1].bits = 17; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[1].multipliers[0] = -1; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[1].weights.pop_back(); }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[1].bias.pop_back(); }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[1].bias[0] = std::numeric_limits<std::int32_t>::min(); }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[1].out.channels = 0; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[3].other = 4; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[3].other = 0; }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[4].other = 0; }));
  EXPECT_TRUE(refused([](Network& n) {
    n.layers[6].width = {2, 2, 1};
    n.layers[5].out.channels = 7;
  }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[2].kind = static_cast<LayerKind>(6); }));
  EXPECT_TRUE(refused([](Network& n) { n.layers[2].activation = static_cast<Activation>(3); }));
  EXPECT_TRUE(refused([](Network& n) { n.layers.back().out.channels = 1u << 21; }));
}

TEST(Network, Products_AreCounted) {
  Network network;
  network.in = {{1, 4, 6}, 2};
  NetworkLayer layer;
  layer.kind = LayerKind::convolution;
  layer.width = {1, 3, 3};
  layer.out.channels = 5;
  layer.weights.assign(5 * 18, 1);
  layer.bias.assign(5, 0);
  layer.multipliers.assign(5, 1);
  network.layers = {layer};
  ASSERT_EQ(check_network(network), nullptr);
  EXPECT_EQ(network_products(network), 24u * 90);
}

}  // namespace
}  // namespace quern::kernels

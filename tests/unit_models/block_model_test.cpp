// Files of models for blocks: whole ones come back, all others are refused with the right reason.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/network/cpu/evaluate.h"
#include "models/block_model.h"
#include "models/sha256.h"
#include "tests/unit_models/small_models.h"

namespace quern::models {
namespace {

using test::small_model;
using Bytes = std::vector<std::uint8_t>;

Bytes stored(const BlockModel& model) {
  const auto bytes = write_block_model(model);
  return {bytes.begin(), bytes.end()};
}

/// With a seal that fits: what a careful attacker would write.
Bytes resealed(Bytes bytes) {
  const Digest seal = sha256(std::span(bytes).first(bytes.size() - 32));
  std::copy(seal.begin(), seal.end(), bytes.end() - 32);
  return bytes;
}

/// Runs a network once, which must write its outputs and nothing else.
void expect_runs(const kernels::Network& network) {
  const kernels::PreparedNetwork prepared(network);
  const std::vector<std::int16_t> in(prepared.inputs(), 300);
  std::vector<std::int16_t> out(prepared.outputs());
  kernels::NetworkRoom room;
  prepared.run(kernels::network_kernels(kernels::best_isa()), in, room, out);
  EXPECT_EQ(room.tensors.back(), out);
}

StatusCode code_of(const Bytes& bytes) { return read_block_model(bytes).status().code(); }

TEST(BlockModel, WrittenAndRead_HasTheSameBytes) {
  const BlockModel model = small_model();
  const Bytes bytes = stored(model);
  const auto back = read_block_model(bytes);
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(stored(*back), bytes);
  EXPECT_EQ(back->record, model.record);
  EXPECT_EQ(back->predictors[1].decoder.out().elems(), 32u);
  EXPECT_EQ(back->predictors[1].latents(), 3u);
  EXPECT_TRUE(back->can_encode());
  EXPECT_EQ(model_kind(bytes), kBlockModelKind);
  EXPECT_EQ(model_kind(std::span(bytes).first(11)), 0u);
}

TEST(BlockModel, DecodingHalf_HasTheIdOfTheWhole) {
  const BlockModel model = small_model();
  const BlockModel half = decoding_half(model);
  EXPECT_FALSE(half.can_encode());
  EXPECT_LT(stored(half).size(), stored(model).size());
  EXPECT_EQ(model_id(half), model_id(model));
  BlockModel other = model;
  other.predictors[0].decoder.layers[0].weights[0] ^= 1;
  EXPECT_NE(model_id(other), model_id(model));
  BlockModel encoder = model;
  encoder.predictors[0].encoder.layers[0].weights[0] ^= 1;
  EXPECT_EQ(model_id(encoder), model_id(model));
  const auto back = read_block_model(stored(half));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(model_id(*back), model_id(model));
}

TEST(BlockModel, CutOrChanged_IsRefused) {
  const Bytes bytes = stored(small_model());
  for (std::size_t size = 0; size < bytes.size(); size += size < 64 ? 1 : 37) {
    const StatusCode code = code_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_TRUE(code == StatusCode::bad_magic || code == StatusCode::truncated || code == StatusCode::checksum_mismatch)
        << size;
  }
  for (std::size_t at = 0; at < bytes.size(); at += 7) {
    Bytes changed = bytes;
    changed[at] ^= 0x10;
    EXPECT_FALSE(read_block_model(changed).ok()) << at;
  }
}

/// Every field set to other values under a fitting seal: a model or a status, and what is accepted is checked.
TEST(BlockModel, HostileFields_GiveACheckedModelOrAStatus) {
  const Bytes bytes = stored(small_model());
  std::size_t refused = 0;
  for (std::size_t at = 8; at < bytes.size() - 32; ++at)
    for (const int value : {0, 1, 0x7F, 0x80, 0xFF}) {
      Bytes changed = bytes;
      changed[at] = static_cast<std::uint8_t>(value);
      const auto model = read_block_model(resealed(changed));
      if (!model.ok()) {
        ++refused;
        continue;
      }
      for (BlockPredictor predictor : model->predictors) {
        EXPECT_EQ(kernels::check_network(predictor.decoder), nullptr);
        EXPECT_EQ(predictor.decoder.out().elems(), model->block_elems());
        expect_runs(predictor.decoder);
        if (!predictor.encoder.layers.empty()) expect_runs(predictor.encoder);
      }
    }
  EXPECT_GT(refused, 100u);
  for (std::size_t size = 12; size + 32 < bytes.size(); size += 5) {
    Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size + 32));
    EXPECT_FALSE(read_block_model(resealed(cut)).ok()) << size;
  }
}

TEST(BlockModel, OfAnotherKindOrVersion_IsNamed) {
  const auto with = [](std::size_t at, std::uint8_t value) {
    Bytes bytes = stored(small_model());
    bytes[at] = value;
    return code_of(resealed(bytes));
  };
  EXPECT_EQ(with(8, kModelFileVersion + 1), StatusCode::unsupported_version);
  EXPECT_EQ(with(8, 2), StatusCode::corrupt);
  EXPECT_EQ(with(10, 1), StatusCode::unsupported);
  EXPECT_EQ(with(12, 2), StatusCode::unsupported_version);  // of the engine
  EXPECT_EQ(with(15, 3), StatusCode::corrupt);              // no power of two
  EXPECT_EQ(with(16, 16), StatusCode::corrupt);             // decoders do not fit
  EXPECT_EQ(with(17, 15), StatusCode::corrupt);
}

TEST(BlockModel, WeightsThatCouldOverflow_AreRefused) {
  BlockModel model = small_model();
  model.predictors[0].decoder.layers[0].bias[1] = 2147483647;
  EXPECT_EQ(code_of(stored(model)), StatusCode::corrupt);
}

kernels::NetworkLayer layer_of(kernels::LayerKind kind, kernels::TensorShape out, std::size_t columns) {
  kernels::NetworkLayer layer = kernels::test::plain_layer(kind);
  layer.out = out;
  const std::size_t rows = layer.rows();
  layer.weights.assign(rows * columns, 1);
  layer.bias.assign(rows, 0);
  layer.multipliers.assign(rows, 1);
  return layer;
}

BlockModel decoder_alone(std::array<std::uint32_t, 3> block, kernels::Network decoder) {
  BlockModel model;
  model.block = block;
  model.predictors.push_back({BlockPredictorKind::autoencoder, {}, std::move(decoder)});
  return model;
}

TEST(BlockModel, MoreNumbersThanABlockIsWorth_AreRefused) {
  using kernels::LayerKind;
  // A latent and 16 values: 64 * 17 = 1088 numbers at most. Channels double n times, and become one again.
  const auto code = [](unsigned doublings) {
    kernels::Network network;
    network.layers.push_back(layer_of(LayerKind::dense, {{1, 4, 4}, 1}, 1));
    for (unsigned n = 0; n < doublings; ++n) {
      network.layers.push_back(kernels::test::plain_layer(LayerKind::concatenate));
      network.layers.back().other = n + 1;
    }
    network.layers.push_back(layer_of(LayerKind::convolution, {{1, 4, 4}, 1}, std::size_t{1} << doublings));
    return code_of(stored(decoder_alone({1, 4, 4}, network)));
  };
  EXPECT_EQ(code(5), StatusCode::ok);  // 1 + 16 * 64 = 1025
  EXPECT_EQ(code(6), StatusCode::corrupt);
}

TEST(BlockModel, MoreProductsThanABlockIsWorth_AreRefused) {
  using kernels::LayerKind;
  // Blocks of 4096 values: 2^28 products at most. A convolution of c channels at 1024 places takes 27 * 1024 * c^2.
  const auto code = [](std::uint32_t channels) {
    kernels::Network network;
    network.in_bits = 10;
    network.layers.push_back(layer_of(LayerKind::dense, {{16, 8, 8}, channels}, 1));
    network.layers.back().bits = 10;
    network.layers.push_back(layer_of(LayerKind::convolution, {{16, 8, 8}, channels}, 27 * channels));
    network.layers.back().width = {3, 3, 3};
    network.layers.push_back(layer_of(LayerKind::convolution, {{16, 8, 8}, 4}, channels));
    network.layers.push_back(kernels::test::plain_layer(LayerKind::depth_to_space));
    network.layers.back().width = {1, 2, 2};
    return code_of(stored(decoder_alone({16, 16, 16}, network)));
  };
  EXPECT_EQ(code(96), StatusCode::ok);
  EXPECT_EQ(code(100), StatusCode::corrupt);
}

TEST(BlockModel, HalvesAreToldFromWholeModels) {
  const BlockModel whole = small_model();
  EXPECT_FALSE(is_decoding_half(whole));
  BlockModel half = decoding_half(whole);
  EXPECT_TRUE(is_decoding_half(half));
  half.record = "{}";
  EXPECT_FALSE(is_decoding_half(half));
}

TEST(QuantizeRows, NumbersThatAreNone_AreRefused) {
  for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    kernels::NetworkLayer layer;
    const std::vector<double> weights{1, wrong}, good{1, 2}, bias{0}, wrong_bias{wrong};
    EXPECT_FALSE(quantize_rows({weights, bias, 1, 1, 16}, layer));
    EXPECT_FALSE(quantize_rows({good, wrong_bias, 1, 1, 16}, layer));
    EXPECT_TRUE(layer.weights.empty());
    EXPECT_TRUE(quantize_rows({good, bias, 1, 1, 16}, layer));
  }
}

}  // namespace
}  // namespace quern::models

// Golden files of codec autoencoder: every predictor, a model in the stream.
#include <span>

#include <quern/models.h>

#include "models/block_model.h"
#include "tests/golden/groups.h"
#include "tests/golden/values.h"
#include "tests/support/memory_models.h"

namespace quern::golden {
namespace {

constexpr std::uint32_t kRows = 4;
constexpr std::uint32_t kColumns = 8;

/// 1 or -1: the Walsh function `number` at a place of a block.
int walsh(unsigned number, std::uint64_t y, std::uint64_t x) {
  const auto bits = static_cast<unsigned>((y * kColumns + x) & number);
  return __builtin_parity(bits) != 0 ? -1 : 1;
}

kernels::NetworkLayer dense(std::uint32_t rows, std::int32_t multiplier) {
  kernels::NetworkLayer layer;
  layer.shift = 20;
  layer.bias.assign(rows, 0);
  layer.multipliers.assign(rows, multiplier);
  return layer;
}

/// Latents are a quarter of the sums of values times functions.
kernels::Network encoder_of(std::initializer_list<unsigned> functions) {
  kernels::Network network;
  network.in.channels = kRows * kColumns;
  network.in_bits = 15;
  kernels::NetworkLayer layer = dense(static_cast<std::uint32_t>(functions.size()), 2064);  // 2^20 / (4 * 127)
  layer.out.channels = static_cast<std::uint32_t>(functions.size());
  for (const unsigned function : functions)
    for (std::uint64_t y = 0; y < kRows; ++y)
      for (std::uint64_t x = 0; x < kColumns; ++x)
        layer.weights.push_back(static_cast<std::int8_t>(127 * walsh(function, y, x)));
  network.layers = {layer};
  return network;
}

/// Values are an eighth of the latents times functions. `folded`: they come as channels of 2 x 4 places, go through two
/// convolutions that change little, and become places then.
kernels::Network decoder_of(std::initializer_list<unsigned> functions, bool folded) {
  kernels::Network network;
  network.in.channels = static_cast<std::uint32_t>(functions.size());
  kernels::NetworkLayer layer = dense(kRows * kColumns, 1032);  // 2^20 / (8 * 127)
  layer.bits = 15;
  layer.out =
      folded ? kernels::TensorShape{{1, kRows / 2, kColumns / 2}, 4} : kernels::TensorShape{{1, kRows, kColumns}, 1};
  for (std::uint64_t i = 0; i < kRows * kColumns; ++i) {
    const std::uint64_t y = folded ? i / 16 * 2 + i % 4 / 2 : i / kColumns;
    const std::uint64_t x = folded ? i / 4 % 4 * 2 + i % 2 : i % kColumns;
    for (const unsigned function : functions)
      layer.weights.push_back(static_cast<std::int8_t>(127 * walsh(function, y, x)));
  }
  network.layers = {layer};
  if (!folded) return network;
  for (const auto activation : {kernels::Activation::leaky, kernels::Activation::relu}) {
    kernels::NetworkLayer convolution = dense(4, 8256);  // 2^20 / 127
    convolution.kind = kernels::LayerKind::convolution;
    convolution.width = {1, 3, 3};
    convolution.bits = 15;
    convolution.activation = activation;
    convolution.out.channels = 4;
    // Small corrections, in channels of their own; the sum with what went in is made by another layer.
    for (int row = 0; row < 4; ++row)
      for (int i = 0; i < 36; ++i) convolution.weights.push_back(static_cast<std::int8_t>(i % 7 == row ? 3 : 0));
    network.layers.push_back(convolution);
  }
  kernels::NetworkLayer add;
  add.kind = kernels::LayerKind::add;
  add.other = 1;
  add.bits = 15;
  network.layers.push_back(add);
  kernels::NetworkLayer unfold;
  unfold.kind = kernels::LayerKind::depth_to_space;
  unfold.width = {1, 2, 2};
  network.layers.push_back(unfold);
  return network;
}

models::BlockModel golden_model() {
  models::BlockModel model;
  model.block = {1, kRows, kColumns};
  model.unit_bits = 12;
  model.record = R"({"golden": true})";
  model.predictors.push_back(
      {models::BlockPredictorKind::principal_components, encoder_of({1, 2, 8, 16}), decoder_of({1, 2, 8, 16}, false)});
  model.predictors.push_back(
      {models::BlockPredictorKind::autoencoder, encoder_of({9, 18, 27}), decoder_of({9, 18, 27}, true)});
  for (models::BlockPredictor& predictor : model.predictors) {
    kernels::check_network(predictor.encoder);
    kernels::check_network(predictor.decoder);
  }
  return model;
}

/// Blocks of the functions of both predictors in turn, and noise.
double blocky(std::uint64_t y, std::uint64_t x) {
  const std::uint64_t block = y / kRows * 16 + x / kColumns;
  double value = static_cast<double>(swing(41, y * 512 + x, 6));
  static constexpr unsigned kEven[] = {1, 2, 8, 16};
  static constexpr unsigned kOdd[] = {9, 18, 27};
  const std::span<const unsigned> functions =
      block % 2 == 0 ? std::span<const unsigned>(kEven) : std::span<const unsigned>(kOdd);
  for (const unsigned function : functions)
    value += static_cast<double>(swing(40, block * 32 + function, 400) * walsh(function, y % kRows, x % kColumns));
  return value;
}

GoldenFile embedded_file() {
  testing::MemoryModels source;
  const String id = source.add(golden_model());
  const CodecsWithModels codecs(source);
  const auto value = [](std::uint64_t i) { return blocky(i / 75, i % 75); };
  GoldenFile file =
      one("autoencoder_model_f32", "a model of two networks in the stream", values_of(DType::f32, {33, 75}, value),
          with(BoundKind::abs, 4, "autoencoder", {{"model", id}, {"embed", "yes"}}));
  VectorSink sink(file.written);
  if (!compress(file.streams[0].array.view(), file.streams[0].options, codecs.registry(), {}, sink).ok())
    file.written.clear();
  return file;
}

}  // namespace

void add_autoencoder_files(std::vector<GoldenFile>& files) {
  files.push_back(embedded_file());
  testing::OwnedArray slopes = values_of(DType::f32, {40, 52}, [](std::uint64_t i) {
    const std::uint64_t y = i / 52, x = i % 52;
    // Planes, rough ground, steps.
    if (y < 16) return static_cast<double>(3 * x + 5 * y) + static_cast<double>(swing(42, i, 4));
    return static_cast<double>(swing(43, y / 16 * 8 + x / 16, 300) + swing(44, i, y < 32 ? 2 : 12));
  });
  set_bits(slopes, 700, 0x7FC00001);
  set_bits(slopes, 701, 0x7FC00001);
  set_bits(slopes, 1500, 0x80000000);
  files.push_back(one("autoencoder_plain_f32", "constants, planes, Lorenzo, a mask, an exception", std::move(slopes),
                      with(BoundKind::abs, 1.5, "autoencoder")));
  files.push_back(one(
      "autoencoder_smooth_i16", "cubes of integers that are all predicted",
      values_of(DType::i16, {9, 10, 17}, [](std::uint64_t i) { return static_cast<double>(i % 17 + 2 * (i / 170)); }),
      with(BoundKind::abs, 12, "autoencoder")));
  files.push_back(
      one("autoencoder_constant_f64", "a constant chunk",
          values_of(DType::f64, {5, 6}, [](std::uint64_t i) { return 8 + 0.125 * static_cast<double>(i % 2); }),
          with(BoundKind::abs, 0.25, "autoencoder")));
  files.push_back(one(
      "autoencoder_line_f16", "a line",
      values_of(DType::f16, {600},
                [](std::uint64_t i) { return static_cast<double>(i / 4) + static_cast<double>(swing(45, i, 16)) / 8; }),
      with(BoundKind::abs, 0.5, "autoencoder")));
}

}  // namespace quern::golden

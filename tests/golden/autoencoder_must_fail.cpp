// Broken streams of codec autoencoder: the golden one with a model in it, and other models there.
#include "models/block_model.h"
#include "tests/golden/broken_streams.h"

namespace quern::golden {
namespace {

/// A decoder of four latents whose channels double six times and become one again: more numbers than blocks of 4 x 8
/// values are worth.
kernels::Network wide_decoder() {
  constexpr std::uint32_t kDoublings = 6;
  kernels::Network network;
  network.in.channels = 4;
  kernels::NetworkLayer first;
  first.out = {{1, 4, 8}, 1};
  first.weights.assign(4 * 32, 1);
  first.bias.assign(32, 0);
  first.multipliers.assign(32, 1);
  network.layers.push_back(first);
  for (std::uint32_t n = 1; n <= kDoublings; ++n) {
    kernels::NetworkLayer join;
    join.kind = kernels::LayerKind::concatenate;
    join.other = n;
    network.layers.push_back(join);
  }
  kernels::NetworkLayer last;
  last.kind = kernels::LayerKind::convolution;
  last.weights.assign(std::size_t{1} << kDoublings, 1);
  last.bias.assign(1, 0);
  last.multipliers.assign(1, 1);
  network.layers.push_back(last);
  return network;
}

/// An encoder of blocks of 4 x 8 values to as many latents.
kernels::Network some_encoder(std::uint32_t latents) {
  kernels::Network network;
  network.in.channels = 32;
  kernels::NetworkLayer layer;
  layer.out.channels = latents;
  layer.weights.assign(std::size_t{32} * latents, 1);
  layer.bias.assign(latents, 0);
  layer.multipliers.assign(latents, 1);
  network.layers.push_back(layer);
  return network;
}

Bytes golden_stream() {
  std::vector<GoldenFile> files;
  add_autoencoder_files(files);
  for (const GoldenFile& file : files)
    if (file.name == "autoencoder_model_f32") return file.written;
  std::abort();
}

}  // namespace

void add_autoencoder_cases(std::vector<MustFailCase>& cases) {
  constexpr std::size_t kModelAt = 4;  // behind the block and the model's place
  const Bytes stream = golden_stream();
  const auto add = [&](const char* name, const char* why, const std::function<void(models::BlockModel&)>& change) {
    const auto with_model = [&](Header& h) {
      const std::span<const std::uint8_t> stored = std::span(h.params).subspan(kModelAt);
      models::BlockModel model = must(models::read_block_model(stored));
      change(model);
      const Bytes bytes = models::write_block_model(model);
      h.params.resize(kModelAt);
      h.params.insert(h.params.end(), bytes.begin(), bytes.end());
    };
    cases.push_back({name, StatusCode::corrupt, why, with_header(stream, with_model)});
  };
  add("autoencoder_model_wide", "a network of more numbers than its blocks are worth",
      [](models::BlockModel& model) { model.predictors[0].decoder = wide_decoder(); });
  add("autoencoder_model_encodes", "a model in the stream that has an encoder", [](models::BlockModel& model) {
    model.predictors[0].encoder = some_encoder(static_cast<std::uint32_t>(model.predictors[0].latents()));
  });
  add("autoencoder_model_record", "a model in the stream that has a record",
      [](models::BlockModel& model) { model.record = "{}"; });
}

}  // namespace quern::golden

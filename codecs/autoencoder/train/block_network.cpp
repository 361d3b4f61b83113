// Torch trains; what it found becomes whole numbers.
#include "codecs/autoencoder/train/block_network.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include <torch/torch.h>

#include "kernels/network/cpu/evaluate.h"

#include "surrogate/train/torch_layers.h"

namespace quern::codec::autoencoder::train {
namespace {

using kernels::LayerKind;
using kernels::Network;
using kernels::NetworkLayer;
using surrogate::convolve_replicated;
using surrogate::quantize_layer;

constexpr unsigned kUnitBits = 12;
constexpr double kValueUnit = 1 << kUnitBits;
constexpr unsigned kValueBits = 15;  // values less their mean lie within plus and minus 2
constexpr unsigned kInnerBits = 14;
constexpr std::int64_t kBatch = 64;

/// Rounds rows of weights to 8 bits, and passes gradients on as if it had not.
torch::Tensor rounded(const torch::Tensor& w, bool whole) {
  if (!whole) return w;
  const torch::Tensor rows = w.reshape({w.size(0), -1});
  const torch::Tensor scale = std::get<0>(rows.abs().max(1, true)).clamp_min(1e-12) / 127;
  return w + ((rows / scale).round() * scale - rows).detach().reshape(w.sizes());
}

torch::Tensor leaky(const torch::Tensor& x) { return torch::max(x, x * 0.125); }

/// Three convolutions on places that became channels: what they add to a block. The last begins at 0.
struct Refinement : torch::nn::Module {
  Refinement(const std::array<std::uint32_t, 3>& block, std::int64_t channels) {
    for (std::size_t a = 0; a < 3; ++a) {
      factor[a] = block[a] > 1 ? 2 : 1;
      width[a] = block[a] > 1 ? 3 : 1;
      small[a] = static_cast<std::int64_t>(block[a]) / factor[a];
    }
    folded = factor[0] * factor[1] * factor[2];
    const std::array<std::int64_t, 4> sizes{folded, channels, channels, folded};
    for (std::size_t n = 0; n < 3; ++n) {
      const std::string number = std::to_string(n);
      const std::int64_t fan_in = sizes[n] * width[0] * width[1] * width[2];
      const torch::Tensor w = torch::randn({sizes[n + 1], sizes[n], width[0], width[1], width[2]}) *
                              (n == 2 ? 0.0 : std::sqrt(2.0 / static_cast<double>(fan_in)));
      weights.push_back(register_parameter("w" + number, w));
      biases.push_back(register_parameter("b" + number, torch::zeros({sizes[n + 1]})));
    }
  }

  torch::Tensor fold(const torch::Tensor& x) const {  // blocks of places to channels, slowest axis first
    return x.reshape({-1, small[0], factor[0], small[1], factor[1], small[2], factor[2]})
        .permute({0, 2, 4, 6, 1, 3, 5})
        .reshape({-1, folded, small[0], small[1], small[2]});
  }
  torch::Tensor unfold(const torch::Tensor& x) const {
    return x.reshape({-1, factor[0], factor[1], factor[2], small[0], small[1], small[2]})
        .permute({0, 4, 1, 5, 2, 6, 3})
        .reshape({x.size(0), -1});
  }
  torch::Tensor convolve(const torch::Tensor& x, std::size_t n, bool whole) const {
    return convolve_replicated(x, rounded(weights[n], whole), biases[n], {1, 1, 1});
  }
  /// Also tells the largest magnitudes inside, for their units.
  torch::Tensor forward(const torch::Tensor& x, bool whole, std::array<double, 2>* largest = nullptr) {
    torch::Tensor h = fold(x);
    for (std::size_t n = 0; n < 2; ++n) {
      h = leaky(convolve(h, n, whole));
      if (largest != nullptr) (*largest)[n] = h.abs().max().item<double>();
    }
    return x + unfold(convolve(h, 2, whole));
  }

  std::array<std::int64_t, 3> factor{}, width{}, small{};
  std::int64_t folded = 1;
  std::vector<torch::Tensor> weights, biases;
};

struct Autoencoder : torch::nn::Module {
  Autoencoder(const NetworkOptions& options, const torch::Tensor& basis)
      : before(register_module("before", std::make_shared<Refinement>(options.block, options.channels))),
        after(register_module("after", std::make_shared<Refinement>(options.block, options.channels))),
        to_latents(register_parameter("to", basis.t().contiguous().clone())),
        from_latents(register_parameter("from", basis.contiguous().clone())) {}

  torch::Tensor encode(const torch::Tensor& x, bool whole) {
    return torch::matmul(before->forward(x, whole), rounded(to_latents, whole).t());
  }
  torch::Tensor decode(const torch::Tensor& latents, bool whole) {
    return after->forward(torch::matmul(latents, rounded(from_latents, whole).t()), whole);
  }

  std::shared_ptr<Refinement> before, after;
  torch::Tensor to_latents, from_latents;
};

/// Distance of projections of standardised latents from those of normal numbers, along random directions.
torch::Tensor sliced_wasserstein(const torch::Tensor& latents) {
  constexpr std::int64_t kDirections = 50;
  const torch::Tensor directions = torch::nn::functional::normalize(
      torch::randn({latents.size(1), kDirections}), torch::nn::functional::NormalizeFuncOptions().dim(0));
  const auto sorted = [&](const torch::Tensor& points) {
    return std::get<0>(torch::matmul(points, directions).sort(0));
  };
  return (sorted(latents) - sorted(torch::randn_like(latents))).pow(2).mean();
}

void add_dense(Network& network, const torch::Tensor& weights, double in_unit, double out_unit, unsigned in_bits,
               const kernels::TensorShape& out) {
  NetworkLayer layer;
  layer.kind = LayerKind::dense;
  layer.out = out;
  quantize_layer(weights, torch::zeros({weights.size(0)}), {in_unit, out_unit, in_bits}, layer);
  network.layers.push_back(std::move(layer));
}

/// What Refinement::forward does to tensor number `of`, which is the last one.
void add_refinement(Network& network, const Refinement& refinement, const std::array<double, 2>& largest,
                    unsigned value_bits) {
  const auto of = static_cast<std::uint32_t>(network.layers.size());
  NetworkLayer fold;
  fold.kind = LayerKind::space_to_depth;
  for (std::size_t a = 0; a < 3; ++a) fold.width[a] = static_cast<std::uint8_t>(refinement.factor[a]);
  network.layers.push_back(fold);
  double unit = kValueUnit;
  unsigned bits = value_bits;
  for (std::size_t n = 0; n < 3; ++n) {
    NetworkLayer layer;
    layer.kind = LayerKind::convolution;
    for (std::size_t a = 0; a < 3; ++a) layer.width[a] = static_cast<std::uint8_t>(refinement.width[a]);
    layer.out.channels = static_cast<std::uint32_t>(refinement.weights[n].size(0));
    layer.activation = n < 2 ? kernels::Activation::leaky : kernels::Activation::none;
    layer.bits = static_cast<std::uint8_t>(n < 2 ? kInnerBits : value_bits);
    // Half of the room is left for larger numbers than the training saw.
    const double out_unit = n < 2 ? std::exp2(std::floor(std::log2(4096 / std::max(largest[n], 1e-3)))) : kValueUnit;
    // Torch has channels before places, the engine places before channels.
    quantize_layer(refinement.weights[n].permute({0, 2, 3, 4, 1}), refinement.biases[n], {unit, out_unit, bits}, layer);
    network.layers.push_back(std::move(layer));
    unit = out_unit;
    bits = kInnerBits;
  }
  NetworkLayer unfold = fold;
  unfold.kind = LayerKind::depth_to_space;
  network.layers.push_back(unfold);
  NetworkLayer add;
  add.kind = LayerKind::add;
  add.other = of;
  add.bits = static_cast<std::uint8_t>(value_bits);
  network.layers.push_back(add);
}

kernels::TensorShape block_shape(const NetworkOptions& options) { return {options.block, 1}; }

void check(Network& network) {
  if (const char* const wrong = kernels::check_network(network); wrong != nullptr) throw std::runtime_error(wrong);
}

/// A power of two for which latents of that magnitude take a quarter of their room.
double latent_unit(double largest) { return std::exp2(std::floor(std::log2(8192 / std::max(largest, 1e-3)))); }

models::BlockPredictor principal_predictor(const torch::Tensor& basis, const torch::Tensor& x,
                                           const NetworkOptions& options) {
  const double unit = latent_unit(torch::matmul(x, basis).abs().max().item<double>());
  models::BlockPredictor out;
  const auto latents = static_cast<std::uint32_t>(basis.size(1));
  out.encoder.in = block_shape(options);
  out.encoder.in_bits = kValueBits;
  add_dense(out.encoder, basis.t(), kValueUnit, unit, kValueBits, {{1, 1, 1}, latents});
  out.decoder.in.channels = latents;
  add_dense(out.decoder, basis, unit, kValueUnit, out.decoder.in_bits, block_shape(options));
  check(out.encoder);
  check(out.decoder);
  return out;
}

models::BlockPredictor autoencoder_predictor(Autoencoder& network, const torch::Tensor& x,
                                             const NetworkOptions& options) {
  torch::NoGradGuard guard;
  std::array<double, 2> before{}, after{};
  const torch::Tensor latents = torch::matmul(network.before->forward(x, true, &before), network.to_latents.t());
  network.after->forward(torch::matmul(latents, network.from_latents.t()), true, &after);
  const double unit = latent_unit(latents.abs().max().item<double>());
  models::BlockPredictor out;
  out.kind = models::BlockPredictorKind::autoencoder;
  out.encoder.in = block_shape(options);
  out.encoder.in_bits = kValueBits;
  add_refinement(out.encoder, *network.before, before, kValueBits);
  add_dense(out.encoder, network.to_latents, kValueUnit, unit, kValueBits, {{1, 1, 1}, options.latents});
  out.decoder.in.channels = options.latents;
  add_dense(out.decoder, network.from_latents, unit, kValueUnit, out.decoder.in_bits, block_shape(options));
  out.decoder.layers.back().bits = kValueBits;
  add_refinement(out.decoder, *network.after, after, kValueBits);
  check(out.encoder);
  check(out.decoder);
  return out;
}

void train(Autoencoder& network, const torch::Tensor& x, const NetworkOptions& options, TrainedModel& out) {
  const torch::Tensor deviation = torch::matmul(x, network.to_latents.t()).std(0).detach().clamp_min(1e-6);
  torch::optim::Adam optimizer(network.parameters(), torch::optim::AdamOptions(1e-3));
  const auto begin = std::chrono::steady_clock::now();
  const auto share = [&] {
    if (options.steps != UINT64_MAX) return static_cast<double>(out.steps) / static_cast<double>(options.steps);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / options.seconds;
  };
  for (double done = 0; done < 1; done = share()) {
    const bool whole = done > 0.8;
    for (auto& group : optimizer.param_groups())
      static_cast<torch::optim::AdamOptions&>(group.options()).lr(1e-3 * (1 - 0.95 * done));
    const torch::Tensor batch = x.index_select(0, torch::randint(x.size(0), {kBatch}, torch::kLong));
    const torch::Tensor latents = network.encode(batch, whole);
    const torch::Tensor noise = (torch::rand_like(latents) - 0.5) * deviation * 0.05;
    const torch::Tensor error = network.decode(latents + noise, whole) - batch;
    const torch::Tensor loss =
        error.abs().mean() + error.pow(2).mean() + 1e-4 * sliced_wasserstein(latents / deviation);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    ++out.steps;
    if (out.steps % 32 == 0 && options.progress) options.progress(done);
    out.train_loss = loss.item<double>();
    if (!std::isfinite(out.train_loss)) throw std::runtime_error("training diverged; try another --seed");
  }
}

}  // namespace

TrainedModel train_blocks(const std::vector<float>& blocks, const NetworkOptions& options) {
  torch::manual_seed(options.seed);
  const auto elems = static_cast<std::int64_t>(options.block[0]) * options.block[1] * options.block[2];
  const auto count = static_cast<std::int64_t>(blocks.size()) / elems;
  if (count < std::max<std::int64_t>(kBatch, options.components))
    throw std::runtime_error("the training files have too few blocks whose values differ; name more files");
  const torch::Tensor x = torch::from_blob(const_cast<float*>(blocks.data()), {count, elems}, torch::kFloat).clone();
  const torch::Tensor covariance = torch::matmul(x.t(), x).to(torch::kDouble) / static_cast<double>(count);
  // Ascending; the last ones explain most.
  const torch::Tensor vectors = std::get<1>(torch::linalg_eigh(covariance, "L")).flip({1}).to(torch::kFloat);
  TrainedModel out;
  out.principal.block = options.block;
  out.principal.unit_bits = kUnitBits;
  out.principal.predictors.push_back(
      principal_predictor(vectors.narrow(1, 0, options.components).contiguous(), x, options));
  if (options.channels == 0) return out;
  const torch::Tensor linear = vectors.narrow(1, 0, options.latents).contiguous();
  out.linear = principal_predictor(linear, x, options);
  Autoencoder network(options, linear);
  train(network, x, options, out);
  out.both = out.principal;
  out.both.predictors.push_back(autoencoder_predictor(network, x, options));
  const std::int64_t compared = std::min<std::int64_t>(count, 512);
  const torch::Tensor part = x.narrow(0, 0, compared);
  torch::NoGradGuard guard;
  const double real = (network.decode(network.encode(part, false), false) - part).pow(2).mean().item<double>();
  const std::vector<float> same(blocks.begin(), blocks.begin() + compared * elems);
  out.rounding_db = 10 * std::log10(prediction_error(out.both.predictors.back(), same, kUnitBits) / real);
  return out;
}

double prediction_error(const models::BlockPredictor& predictor, const std::vector<float>& blocks, unsigned unit_bits) {
  const kernels::PreparedNetwork encoder(predictor.encoder), decoder(predictor.decoder);
  const kernels::NetworkKernels& kernels = kernels::network_kernels(kernels::best_isa());
  kernels::NetworkRoom to, from;
  std::vector<std::int16_t> in(encoder.inputs()), latents(encoder.outputs()), out(decoder.outputs());
  const double unit = std::exp2(unit_bits);
  double sum = 0;
  for (std::size_t first = 0; first < blocks.size(); first += in.size()) {
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = static_cast<std::int16_t>(std::clamp(std::lrint(blocks[first + i] * unit), -32767L, 32767L));
    encoder.run(kernels, in, to, latents);
    decoder.run(kernels, latents, from, out);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const double error = out[i] / unit - static_cast<double>(blocks[first + i]);
      sum += error * error;
    }
  }
  return sum / static_cast<double>(std::max<std::size_t>(blocks.size(), 1));
}

}  // namespace quern::codec::autoencoder::train

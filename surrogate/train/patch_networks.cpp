// Three convolutions, each of which halves the extents, and the mean over what is left. Every step sees some patches of
// each array, mirrored by chance, so that arrays are not learnt by heart.
#include "surrogate/train/patch_networks.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>

#include <torch/torch.h>

#include <quern/compress.h>

#include "surrogate/train/scales.h"
#include "surrogate/train/stored_array.h"
#include "surrogate/train/torch_layers.h"

namespace quern::surrogate {
namespace {

constexpr std::int64_t kLayers = 3;
constexpr std::array<std::int64_t, kLayers + 1> kChannels{kPatchChannels, 8, 16,
                                                          static_cast<std::int64_t>(kDeepFeatures)};
constexpr std::int64_t kPatchesAStep = 8;
constexpr unsigned kInnerBits = 14;
constexpr double kPatchUnit = 1 << kPatchUnitBits;

torch::Tensor leaky(const torch::Tensor& x) { return torch::max(x, x * 0.125); }

/// The network of one form of patches.
struct Convolutions : torch::nn::Module {
  explicit Convolutions(bool cubes) {
    for (std::size_t a = 0; a < 3; ++a) width[a] = cubes || a > 0 ? 3 : 1;
    for (const std::int64_t w : width) step.push_back(w == 3 ? 2 : 1);
    for (std::size_t n = 0; n < kLayers; ++n) {
      const std::string number = std::to_string(n);
      const double fan_in = static_cast<double>(kChannels[n] * width[0] * width[1] * width[2]);
      weights.push_back(register_parameter(
          "w" + number,
          torch::randn({kChannels[n + 1], kChannels[n], width[0], width[1], width[2]}) * std::sqrt(2 / fan_in)));
      biases.push_back(register_parameter("b" + number, torch::zeros({kChannels[n + 1]})));
    }
  }

  /// Patches, channels, extents to patches, kDeepFeatures. Also tells the largest magnitudes, for their units.
  torch::Tensor forward(torch::Tensor x, std::array<double, kLayers>* largest = nullptr) const {
    for (std::size_t n = 0; n < kLayers; ++n) {
      x = leaky(convolve_replicated(x, weights[n], biases[n], step));
      if (largest != nullptr) (*largest)[n] = x.abs().max().item<double>();
    }
    return x.mean({2, 3, 4});
  }

  std::array<std::int64_t, 3> width{};
  std::vector<std::int64_t> step;
  std::vector<torch::Tensor> weights, biases;
};

/// The arrays that have patches of one form: arrays x kPatches x channels x extents.
struct Form {
  bool cubes = false;
  std::vector<std::string> arrays;
  torch::Tensor values;
};

Form form_of(const std::vector<const Row*>& rows, const ArrayPatches& patches, bool cubes) {
  Form form{cubes, {}, {}};
  std::set<std::string> seen;
  std::vector<torch::Tensor> all;
  const kernels::TensorShape shape = patch_shape(cubes);
  const auto extent = [&](std::size_t a) { return static_cast<std::int64_t>(shape.extents[a]); };
  for (const Row* row : rows) {
    const Patches& own = patches.at(row->run.sha256);
    if (own.values.empty() || own.cubes != cubes || !seen.insert(row->run.sha256).second) continue;
    form.arrays.push_back(row->run.sha256);
    torch::Tensor one = torch::zeros({static_cast<std::int64_t>(own.values.size())});
    std::transform(own.values.begin(), own.values.end(), one.data_ptr<float>(),
                   [](std::int16_t v) { return static_cast<float>(v / kPatchUnit); });
    all.push_back(one.reshape({static_cast<std::int64_t>(kPatches), extent(0), extent(1), extent(2),
                               static_cast<std::int64_t>(kPatchChannels)})
                      .permute({0, 4, 1, 2, 3}));
  }
  if (!all.empty()) form.values = torch::stack(all);
  return form;
}

/// Some patches of each array, mirrored along axes that chance picks: arrays * kPatchesAStep patches.
torch::Tensor some_patches(const Form& form) {
  const torch::Tensor picked =
      torch::randperm(static_cast<std::int64_t>(kPatches), torch::kLong).slice(0, 0, kPatchesAStep);
  const torch::Tensor some = form.values.index_select(1, picked).flatten(0, 1);
  std::vector<std::int64_t> mirrored;
  const torch::Tensor chance = torch::rand({3});
  for (std::int64_t a = 0; a < 3; ++a)
    if (chance[a].item<float>() < 0.5F) mirrored.push_back(2 + a);
  return mirrored.empty() ? some : some.flip(mirrored);
}

/// Says ratio and PSNR of all codecs from scaled inputs and deep features.
struct CommonHead : torch::nn::Module {
  static constexpr std::int64_t kWidth = 48;
  CommonHead(std::int64_t inputs, std::int64_t codecs)
      : first(register_module("first", torch::nn::Linear(inputs + static_cast<std::int64_t>(kDeepFeatures), kWidth))),
        second(register_module("second", torch::nn::Linear(kWidth, kWidth))),
        last(register_module("last", torch::nn::Linear(kWidth, 2 * codecs))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return last->forward(leaky(second->forward(leaky(first->forward(x)))));
  }
  torch::nn::Linear first, second, last;
};

/// Rows as tensors. `array`: number of the row's array among those of both forms, the last of which has none.
struct CommonBatch {
  torch::Tensor inputs, targets, known, array, columns;
};

CommonBatch common_batch(const std::vector<const Row*>& rows, const std::map<std::string, std::int64_t>& number,
                         std::int64_t without, const std::map<std::string, std::int64_t>& codecs) {
  const auto n = static_cast<std::int64_t>(rows.size());
  const Scales scales = scales_of(rows, [](std::size_t) { return true; });
  CommonBatch out{scaled_inputs(rows, scales), torch::zeros({n, 2}), torch::zeros({n, 2}),
                  torch::full({n}, without, torch::kLong), torch::zeros({n, 2}, torch::kLong)};
  for (std::int64_t i = 0; i < n; ++i) {
    const Row& row = *rows[static_cast<std::size_t>(i)];
    if (const auto found = number.find(row.run.sha256); found != number.end()) out.array[i] = found->second;
    for (std::int64_t t = 0; t < 2; ++t) {
      const Target target = t == 0 ? kRate : kPsnr;
      out.targets[i][t] = row.targets[target] / kUnits[target];
      out.known[i][t] = row.known[target] ? 1.0 : 0.0;
      out.columns[i][t] = 2 * codecs.at(row.run.codec) + t;
    }
  }
  return out;
}

kernels::Network network_of(const Convolutions& convolutions, const Form& form) {
  torch::NoGradGuard guard;
  std::array<double, kLayers> largest{};
  if (form.values.defined()) convolutions.forward(form.values.flatten(0, 1), &largest);
  kernels::Network network;
  network.in = patch_shape(form.cubes);
  network.in_bits = kPatchBits;
  LayerUnits units{kPatchUnit, 0, kPatchBits};
  for (std::size_t n = 0; n < kLayers; ++n) {
    kernels::NetworkLayer layer;
    layer.kind = kernels::LayerKind::convolution;
    for (std::size_t a = 0; a < 3; ++a) {
      layer.width[a] = static_cast<std::uint8_t>(convolutions.width[a]);
      layer.step[a] = static_cast<std::uint8_t>(convolutions.step[a]);
    }
    layer.out.channels = static_cast<std::uint32_t>(kChannels[n + 1]);
    layer.activation = kernels::Activation::leaky;
    layer.bits = kInnerBits;
    // Half of the room is left for larger numbers than the training saw.
    units.out_unit = std::exp2(std::floor(std::log2(4096 / std::max(largest[n], 1e-2))));
    // Torch has channels before places, the engine places before channels.
    quantize_layer(convolutions.weights[n].permute({0, 2, 3, 4, 1}), convolutions.biases[n], units, layer);
    network.layers.push_back(std::move(layer));
    units = {units.out_unit, 0, kInnerBits};
  }
  return network;
}

}  // namespace

bool read_patches(const std::vector<std::string>& files, const RunsTable& table, ArrayPatches& patches,
                  std::string& problem) {
  std::map<std::string, std::set<double>> wanted;  // arrays, and the ranges that their runs have
  for (const Row& row : table.rows) wanted[row.run.sha256].insert(row.run.range);
  for (const std::string& file : files) {
    StoredArray array;
    if (!read_stored_array(file, array, problem)) return false;
    const auto of_runs = wanted.find(array.sha256);
    if (of_runs == wanted.end()) continue;
    const std::optional<ValueRange> range = value_range(array.view(), {}, Execution{});
    // Of fill values nothing is known here: patches would show them as values.
    if (of_runs->second != std::set<double>{range ? range->max - range->min : 0}) {
      problem = file +
                ": has another range than in its runs, which were made with fill values; deep features are trained on "
                "arrays without: leave the runs of this array out";
      return false;
    }
    patches[array.sha256] = take_patches(array.view(), range, {});
  }
  for (const Row& row : table.rows) {
    if (patches.contains(row.run.sha256)) continue;
    problem = row.run.input + ": is in the runs, but in none of the files of --data; deep features need all arrays";
    return false;
  }
  return true;
}

PatchNetworks train_patch_networks(const std::vector<const Row*>& all, const ArrayPatches& patches,
                                   const TrainingOptions& options) {
  constexpr double kStep = 3e-3;
  std::vector<const Row*> rows;
  std::map<std::string, std::int64_t> codecs, number;
  for (const Row* row : all) {
    if (row->part != Part::train) continue;
    rows.push_back(row);
    codecs.emplace(row->run.codec, static_cast<std::int64_t>(codecs.size()));
  }
  if (rows.empty()) throw std::runtime_error("no runs of early steps: deep features need some");
  torch::set_num_threads(1);
  torch::manual_seed(options.seed);
  std::array<Form, 2> forms{form_of(rows, patches, false), form_of(rows, patches, true)};
  for (const Form& form : forms)
    for (const std::string& array : form.arrays) number.emplace(array, static_cast<std::int64_t>(number.size()));
  const CommonBatch batch = common_batch(rows, number, static_cast<std::int64_t>(number.size()), codecs);
  std::array<Convolutions, 2> networks{Convolutions(false), Convolutions(true)};
  CommonHead head(batch.inputs.size(1), static_cast<std::int64_t>(codecs.size()));
  std::vector<torch::Tensor> parameters = head.parameters();
  for (const Convolutions& network : networks)
    for (const torch::Tensor& p : network.parameters()) parameters.push_back(p);
  torch::optim::AdamW optimizer(parameters, torch::optim::AdamWOptions(kStep).weight_decay(0.05));
  for (int epoch = 0; epoch < options.patch_epochs; ++epoch) {
    set_step(optimizer, kStep, epoch, options.patch_epochs);
    optimizer.zero_grad();
    std::vector<torch::Tensor> deep;
    for (std::size_t f = 0; f < 2; ++f)
      if (!forms[f].arrays.empty())
        deep.push_back(networks[f]
                           .forward(some_patches(forms[f]))
                           .reshape({-1, kPatchesAStep, static_cast<std::int64_t>(kDeepFeatures)})
                           .mean(1));
    deep.push_back(torch::zeros({1, static_cast<std::int64_t>(kDeepFeatures)}));
    const torch::Tensor x = torch::cat(
        {batch.inputs + 0.05 * torch::randn_like(batch.inputs), torch::cat(deep).index_select(0, batch.array)}, 1);
    const torch::Tensor out = head.forward(x).gather(1, batch.columns);
    (((out - batch.targets).abs() * batch.known).sum() / batch.known.sum().clamp_min(1)).backward();
    optimizer.step();
  }
  PatchNetworks made{network_of(networks[0], forms[0]), network_of(networks[1], forms[1])};
  if (const char* const wrong = check_patch_networks(made); wrong != nullptr) throw std::runtime_error(wrong);
  return made;
}

void add_deep_features(const PatchNetworks& networks, const ArrayPatches& patches, std::vector<Row>& rows) {
  std::map<std::string, std::vector<double>> known;
  for (Row& row : rows) {
    auto found = known.find(row.run.sha256);
    if (found == known.end())
      found = known.emplace(row.run.sha256, deep_features(networks, patches.at(row.run.sha256))).first;
    row.inputs = row.run.inputs;
    row.inputs.insert(row.inputs.end(), found->second.begin(), found->second.end());
  }
}

}  // namespace quern::surrogate

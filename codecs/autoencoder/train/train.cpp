// From files to a model, and what it gives on later steps, losses too.
#include "codecs/autoencoder/train/train.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/version.h>

#include <quern/compress.h>
#include <quern/models.h>

#include "codecs/autoencoder/train/block_network.h"
#include "codecs/autoencoder/train/training_data.h"
#include "models/sha256.h"
#include "surrogate/train/option_values.h"
#include "surrogate/train/whole_file.h"

namespace quern::codec::autoencoder::train {
namespace {

using surrogate::take_count;
using surrogate::take_number;

constexpr double kBounds[] = {1e-2, 2e-2, 5e-2};
constexpr std::size_t kTrainingBlocks = 20000;
/// Below this an autoencoder does not pay its weights and time over principal components.
constexpr double kLeastGain = 0.97;

struct Arguments {
  std::vector<std::string> data;
  std::string output;
  NetworkOptions network;
  bool keep = false;  ///< the autoencoder stays, whether it pays or not
};

struct OneModel final : ModelSource {
  explicit OneModel(const models::BlockModel& model) : id(models::model_id(model)), bytes(write_block_model(model)) {}
  Result<Vector<std::uint8_t>> find(const ModelId& wanted) const override {
    if (wanted != id) return Status(StatusCode::missing_model, "another model");
    return bytes;
  }
  std::string text() const {
    models::Digest digest{};
    std::copy(id.begin(), id.end(), digest.begin());
    return models::hex(digest).substr(0, 2 * id.size());
  }
  ModelId id;
  Vector<std::uint8_t> bytes;
};

/// Bytes of an array's stream under a bound relative to its range.
std::uint64_t stream_bytes(const TrainingArray& array, double bound, const char* codec, const OneModel* model) {
  CompressOptions options;
  options.bound = {BoundKind::rel, bound};
  options.codec = codec;
  if (model != nullptr) {
    const std::string id = model->text();
    options.settings = {{"model", String(id.begin(), id.end())}, {"embed", "no"}};
  }
  const auto shape = Shape::make(std::vector<std::uint64_t>(array.extents.begin(), array.extents.end()));
  if (!shape.ok()) throw std::runtime_error(shape.status().text());
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const ArrayView view{array.values.data(), DType::f32, *shape};
  const auto report = model == nullptr ? compress(view, options, builtin_codecs(), {}, sink)
                                       : compress(view, options, CodecsWithModels(*model).registry(), {}, sink);
  if (!report.ok()) throw std::runtime_error(array.path + ": " + report.status().text());
  return report->output_bytes;
}

/// Bytes of all test arrays under one bound.
struct Sizes {
  std::uint64_t raw = 0, none = 0, principal = 0, both = 0, stencil = 0;
};

Sizes sizes_at(const std::vector<TrainingArray>& arrays, double bound, const TrainedModel& trained) {
  const OneModel principal(trained.principal);
  Sizes sizes;
  for (const TrainingArray& array : arrays) {
    sizes.raw += array.values.size() * sizeof(float);
    sizes.none += stream_bytes(array, bound, "autoencoder", nullptr);
    sizes.principal += stream_bytes(array, bound, "autoencoder", &principal);
    sizes.stencil += stream_bytes(array, bound, "stencil", nullptr);
    if (trained.both.predictors.empty()) continue;
    const OneModel both(trained.both);
    sizes.both += stream_bytes(array, bound, "autoencoder", &both);
  }
  return sizes;
}

double ratio(std::uint64_t raw, std::uint64_t bytes) {
  return static_cast<double>(raw) / static_cast<double>(std::max<std::uint64_t>(bytes, 1));
}

/// A line of the table; true when the model makes streams smaller, its own bytes not counted.
bool print_sizes(double bound, const Sizes& sizes, std::uint64_t own, std::size_t files, std::uint64_t model_bytes) {
  std::printf("  %-6g  %8.2f  %8.2f  %8.2f  %8.2f  %8.2f\n", bound, ratio(sizes.raw, sizes.none),
              ratio(sizes.raw, own + files * model_bytes), ratio(sizes.raw, own + model_bytes), ratio(sizes.raw, own),
              ratio(sizes.raw, sizes.stencil));
  return own < sizes.none;
}

double decibels(double error) { return -10 * std::log10(std::max(error, 1e-30) / 4); }  // the range is 2

std::string record_of(const TrainingData& data, const Arguments& args, const TrainedModel& trained,
                      const std::string& errors) {
  std::string out = "{\"files\": " + std::to_string(data.train.size()) +
                    ", \"seed\": " + std::to_string(args.network.seed) +
                    ", \"steps\": " + std::to_string(trained.steps) +
                    ", \"trainer\": \"LibTorch " TORCH_VERSION "\", " + errors + ", \"sha256\": [";
  for (std::size_t i = 0; i < data.train.size(); ++i)
    out += std::string(i == 0 ? "\"" : ", \"") + data.train[i].sha256 + "\"";
  return out + "]}";
}

bool parse_block(const std::string& text, std::array<std::uint32_t, 3>& block) {
  if (text == "8x8x8") block = {8, 8, 8};
  if (text == "16x16x16") block = {16, 16, 16};
  if (text == "32x32") block = {1, 32, 32};
  if (text == "16x16") block = {1, 16, 16};
  return text == "8x8x8" || text == "16x16x16" || text == "32x32" || text == "16x16";
}

bool take_small(const std::string& word, const char* value, std::uint64_t least, std::uint64_t most, std::uint32_t& out,
                std::string& problem) {
  std::uint64_t number = 0;
  if (!take_count(word, value, least, most, number, problem)) return false;
  out = static_cast<std::uint32_t>(number);
  return true;
}

/// An option and its value; false with a sentence in `problem` when there is no such option or the value is none.
bool parse_option(const std::string& word, const char* value, Arguments& args, std::string& problem) {
  NetworkOptions& network = args.network;
  if (word == "--data") {
    args.data.emplace_back(value);
    return true;
  }
  if (word == "-o") {
    args.output = value;
    return true;
  }
  if (word == "--block") {
    if (parse_block(value, network.block)) return true;
    problem = word + " " + value + ": use 8x8x8, 16x16x16, 16x16 or 32x32";
    return false;
  }
  if (word == "--latents") return take_small(word, value, 1, 64, network.latents, problem);
  if (word == "--components") return take_small(word, value, 1, 128, network.components, problem);
  if (word == "--channels") return take_small(word, value, 0, 64, network.channels, problem);
  if (word == "--time-budget") return take_number(word, value, 1, 1e6, network.seconds, problem);
  if (word == "--steps") return take_count(word, value, 1, 1000000000, network.steps, problem);
  if (word == "--seed") return take_count(word, value, 0, UINT64_MAX, network.seed, problem);
  problem = word + ": no such option; see quern train --help";
  return false;
}

int train_and_tell(const Arguments& args, const TrainingData& data) {
  const std::vector<float> blocks =
      sample_blocks(data.train, args.network.block, kTrainingBlocks, true, args.network.seed);
  const std::vector<float> tested = sample_blocks(data.test, args.network.block, 2000, false, args.network.seed);
  if (tested.empty()) {
    std::fprintf(
        stderr,
        "quern: the test files hold no whole block of different values; name more or larger files with --data\n");
    return 1;
  }
  TrainedModel trained = train_blocks(blocks, args.network);
  const bool has_network = !trained.both.predictors.empty();
  std::vector<Sizes> sizes;
  for (const double bound : kBounds) sizes.push_back(sizes_at(data.test, bound, trained));
  std::uint64_t principal = 0, both = 0;
  for (const Sizes& s : sizes) {
    principal += s.principal;
    both += s.both;
  }
  std::string errors = "\"components\": " + std::to_string(args.network.components);
  bool pays = false;
  if (has_network) {
    const unsigned bits = trained.both.unit_bits;
    const double linear = decibels(prediction_error(trained.linear, tested, bits));
    const double deep = decibels(prediction_error(trained.both.predictors.back(), tested, bits));
    pays = static_cast<double>(both) <= kLeastGain * static_cast<double>(principal);
    std::printf("later steps, %u latents: principal components %.2f dB, autoencoder %.2f dB (rounding takes %.2f dB)\n",
                args.network.latents, linear, deep, trained.rounding_db);
    std::printf("with the autoencoder, streams take %.3f of what principal components alone give%s\n",
                static_cast<double>(both) / static_cast<double>(principal),
                pays        ? ""
                : args.keep ? ""
                            : "; it is left out");
    errors += ", \"latents\": " + std::to_string(args.network.latents) + ", \"linear_db\": " + std::to_string(linear) +
              ", \"autoencoder_db\": " + std::to_string(deep);
  }
  const bool with_network = has_network && (pays || args.keep);
  models::BlockModel& model = with_network ? trained.both : trained.principal;
  const std::uint64_t model_bytes = write_block_model(models::decoding_half(model)).size();
  std::printf(
      "ratios on %zu later files; a stream holds %llu bytes of the model\n"
      "  bound   no model    inside    shared   outside   stencil\n",
      data.test.size(), static_cast<unsigned long long>(model_bytes));
  if (model_bytes > models::kMostEmbeddedBytes)
    std::printf("that is more than a stream takes (%zu bytes): compress and decompress with --model-store DIR\n",
                models::kMostEmbeddedBytes);
  bool gains = false;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    gains |= print_sizes(kBounds[i], sizes[i], with_network ? sizes[i].both : sizes[i].principal, data.test.size(),
                         model_bytes);
  if (!gains) std::printf("no gain: the codec will fall back to predictors without a model\n");
  model.record = record_of(data, args, trained, errors);
  if (!surrogate::write_whole_file(args.output, write_block_model(model))) {
    std::fprintf(stderr, "quern: %s: cannot be written: %s\n", args.output.c_str(), std::strerror(errno));
    return 2;
  }
  std::printf("%s: %zu bytes\n", args.output.c_str(), write_block_model(model).size());
  return 0;
}

}  // namespace

int run(int count, char** arguments) {
  Arguments args;
  std::string problem;
  for (int i = 0; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--keep") {
      args.keep = true;
      continue;
    }
    if (i + 1 == count) {
      problem = word + ": no such option, or it lacks its value; see quern train --help";
    } else if (parse_option(word, arguments[++i], args, problem)) {
      continue;
    }
    std::fprintf(stderr, "quern: train autoencoder: %s\n", problem.c_str());
    return 1;
  }
  if (args.output.empty()) {
    std::fprintf(stderr, "quern: train autoencoder: name the model with -o MODEL\n");
    return 1;
  }
  args.network.latents = std::min(args.network.latents, args.network.components);
  TrainingData data;
  if (!read_training_data(args.data, data, problem)) {
    std::fprintf(stderr, "quern: %s\n", problem.c_str());
    return 1;
  }
  return train_and_tell(args, data);
}

}  // namespace quern::codec::autoencoder::train

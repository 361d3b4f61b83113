// From files to a model of super-resolution, and what it gives on later steps, losses too.
#include "codecs/stencil/train/train.h"

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

#include "codecs/stencil/train/point_network.h"
#include "codecs/stencil/train/training_points.h"
#include "models/level_model.h"
#include "models/sha256.h"
#include "surrogate/train/option_values.h"
#include "surrogate/train/training_arrays.h"
#include "surrogate/train/whole_file.h"

namespace quern::codec::stencil::train {
namespace {

using surrogate::take_count;
using surrogate::take_number;
using surrogate::TrainingArray;
using surrogate::TrainingData;

struct Arguments {
  std::vector<std::string> data;
  std::string output;
  PointOptions points;
  PointNetworkOptions network;
  double seconds = 60;  ///< for all networks
};

/// Bytes of an array's stream in the layout that the codec chooses, with the model outside, or without one.
std::uint64_t stream_bytes(const TrainingArray& array, double bound, const ModelList& list, const std::string& id) {
  CompressOptions options;
  options.bound = {BoundKind::rel, bound};
  options.codec = "stencil";
  if (!id.empty()) options.settings = {{"model", String(id.begin(), id.end())}, {"embed", "no"}};
  const auto shape = Shape::make(std::vector<std::uint64_t>(array.extents.begin(), array.extents.end()));
  if (!shape.ok()) throw std::runtime_error(shape.status().text());
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const CodecsWithModels codecs(list);
  const auto report =
      compress(ArrayView{array.values.data(), DType::f32, *shape}, options, codecs.registry(), {}, sink);
  if (!report.ok()) throw std::runtime_error(array.path + ": " + report.status().text());
  return report->output_bytes;
}

/// Prints what the model gives on later steps; the bytes with it over those without.
double print_sizes(const std::vector<TrainingArray>& arrays, const std::vector<double>& bounds,
                   const models::LevelModel& model) {
  ModelList list;
  const Vector<std::uint8_t> file = models::write_level_model(models::without_record(model));
  const auto added = list.add(file);
  if (!added.ok()) throw std::runtime_error(added.status().text());
  models::Digest digest{};
  std::copy(added->begin(), added->end(), digest.begin());
  const std::string id = models::hex(digest).substr(0, 2 * added->size());
  std::printf(
      "bytes on %zu later files; the model takes %zu bytes where streams hold it\n"
      "  bound      without        with     ratio  by 16 files\n",
      arrays.size(), file.size());
  std::uint64_t all_without = 0;
  std::uint64_t all_with = 0;
  for (const double bound : bounds) {
    std::uint64_t without = 0;
    std::uint64_t with = 0;
    for (const TrainingArray& array : arrays) {
      without += stream_bytes(array, bound, list, "");
      with += stream_bytes(array, bound, list, id);
    }
    const auto base = static_cast<double>(std::max<std::uint64_t>(without, 1));
    const double shared = static_cast<double>(file.size()) * static_cast<double>(arrays.size()) / 16;
    std::printf("  %-6g  %10llu  %10llu    %6.4f    %6.4f\n", bound, static_cast<unsigned long long>(without),
                static_cast<unsigned long long>(with), static_cast<double>(with) / base,
                (static_cast<double>(with) + shared) / base);
    all_without += without;
    all_with += with;
  }
  return static_cast<double>(all_with) / static_cast<double>(std::max<std::uint64_t>(all_without, 1));
}

std::string record_of(const TrainingData& data, const Arguments& args, double ratio) {
  std::string out =
      "{\"files\": " + std::to_string(data.train.size()) + ", \"seed\": " + std::to_string(args.network.seed) +
      ", \"bound\": " + surrogate::number_text(args.points.bound) +
      ", \"trainer\": \"LibTorch " TORCH_VERSION "\", \"ratio\": " + std::to_string(ratio) + ", \"sha256\": [";
  for (std::size_t i = 0; i < data.train.size(); ++i)
    out += std::string(i == 0 ? "\"" : ", \"") + data.train[i].sha256 + "\"";
  return out + "]}";
}

/// An option and its value; false with a sentence in `problem` when there is no such option or the value is none.
bool parse_option(const std::string& word, const char* value, Arguments& args, std::string& problem) {
  if (word == "--data") {
    args.data.emplace_back(value);
    return true;
  }
  if (word == "-o") {
    args.output = value;
    return true;
  }
  if (word == "--bound") return take_number(word, value, 1e-9, 0.5, args.points.bound, problem);
  if (word == "--time-budget") return take_number(word, value, 1, 1e6, args.seconds, problem);
  if (word == "--steps") return take_count(word, value, 1, 1000000000, args.network.steps, problem);
  if (word == "--seed") {
    if (!take_count(word, value, 0, UINT64_MAX, args.network.seed, problem)) return false;
    args.points.seed = args.network.seed;
    return true;
  }
  if (word == "--channels") {
    std::uint64_t channels = 0;
    if (!take_count(word, value, 4, 64, channels, problem)) return false;
    args.network.hidden = {static_cast<std::int64_t>(channels), static_cast<std::int64_t>(channels * 2 / 3)};
    return true;
  }
  problem = word + ": no such option; see quern train --help";
  return false;
}

/// All arrays have as many axes as the first; 0 with a sentence on stderr where they have not, no networks are for so few
/// or so many, or axes longer than 1 were merged.
std::size_t axes_of(const TrainingData& data) {
  const std::size_t axes = long_axes(data.train.front());
  for (const std::vector<TrainingArray>* part : {&data.train, &data.test})
    for (const TrainingArray& array : *part)
      if (long_axes(array) != axes || axes < 2 || array.long_axes > axes) {
        std::fprintf(stderr,
                     "quern: %s: has %zu axes longer than 1; train superres takes arrays whose last three axes have 2 "
                     "such axes, or 3, and all others are 1\n",
                     array.path.c_str(), std::max(array.long_axes, long_axes(array)));
        return 0;
      }
  return axes;
}

int train_and_tell(Arguments& args, const TrainingData& data) {
  const std::size_t axes = axes_of(data);
  if (axes == 0) return 1;
  const auto points = sample_points(data.train, args.points);
  models::LevelModel model;
  model.axes = static_cast<std::uint8_t>(axes);
  args.network.seconds = args.seconds / static_cast<double>((1u << axes) - 1);
  for (std::size_t c = 1; c < std::size_t{1} << axes; ++c)
    model.classes[c] = train_point_network(points[c], args.network);
  const double ratio = print_sizes(data.test, {args.points.bound, args.points.bound / 10}, model);
  if (ratio >= 1) std::printf("no gain: the codec will fall back to predictions without networks\n");
  model.record = record_of(data, args, ratio);
  const Vector<std::uint8_t> file = models::write_level_model(model);
  if (!surrogate::write_whole_file(args.output, file)) {
    std::fprintf(stderr, "quern: %s: cannot be written: %s\n", args.output.c_str(), std::strerror(errno));
    return 2;
  }
  std::printf("%s: %zu bytes\n", args.output.c_str(), file.size());
  return 0;
}

}  // namespace

int run(int count, char** arguments) {
  Arguments args;
  std::string problem;
  for (int i = 0; i < count; i += 2) {
    if (i + 1 == count) {
      problem = arguments[i] + std::string(": no such option, or it lacks its value; see quern train --help");
    } else if (parse_option(arguments[i], arguments[i + 1], args, problem)) {
      continue;
    }
    std::fprintf(stderr, "quern: train superres: %s\n", problem.c_str());
    return 1;
  }
  if (args.output.empty()) {
    std::fprintf(stderr, "quern: train superres: name the model with -o MODEL\n");
    return 1;
  }
  TrainingData data;
  if (!surrogate::read_training_data(args.data, data, problem)) {
    std::fprintf(stderr, "quern: %s\n", problem.c_str());
    return 1;
  }
  return train_and_tell(args, data);
}

}  // namespace quern::codec::stencil::train

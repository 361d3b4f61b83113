// quern-train: what `quern train` runs. Of `quern train quality`: from runs to a model, with the errors on later steps;
// or the errors on families that were left out.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>

#include <torch/version.h>

#include "codecs/autoencoder/train/train.h"
#include "codecs/stencil/train/train.h"
#include "surrogate/numbers.h"
#include "surrogate/train/network.h"
#include "surrogate/train/patch_networks.h"
#include "surrogate/train/whole_file.h"

namespace quern::surrogate {
namespace {

struct Arguments {
  std::string runs;
  std::string output;
  std::string test;  ///< a model that is tested in place of training; empty: none
  std::string rows;  ///< a file for each run that was predicted; empty: none
  bool families = false;
  bool deep = false;              ///< networks with deep features beside those without
  bool deep_usual = false;        ///< which estimates take unless told otherwise
  std::vector<std::string> data;  ///< of deep features: files of the runs' arrays
  TrainingOptions training;
};

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}

/// Errors of predictions, by target.
struct Errors {
  std::vector<double> ratio, closed_ratio, psnr, closed_psnr, ssim, correlation;
  std::size_t inside = 0, intervals = 0;

  void add(const Row& row, const Prediction& p) {
    const auto percent = [](double log) { return 100 * std::fabs(exp2_of(log) - 1); };
    ratio.push_back(percent(row.targets[kRate] - p.targets[kRate].middle));
    closed_ratio.push_back(percent(row.targets[kRate]));
    for (const Target t : {kRate, kPsnr}) {
      if (!row.known[t]) continue;
      ++intervals;
      if (row.targets[t] >= p.targets[t].low && row.targets[t] <= p.targets[t].high) ++inside;
    }
    if (row.known[kPsnr]) {
      psnr.push_back(std::fabs(row.targets[kPsnr] - p.targets[kPsnr].middle));
      closed_psnr.push_back(std::fabs(row.targets[kPsnr]));
    }
    if (row.known[kSsim]) {
      const double base = base_of(row.run.inputs, kBaseSsim);
      ssim.push_back(std::fabs(exp2_of(base + row.targets[kSsim]) - exp2_of(base + p.targets[kSsim].middle)));
    }
    if (row.known[kAutocorrelation])
      correlation.push_back(std::fabs(row.targets[kAutocorrelation] - p.targets[kAutocorrelation].middle));
  }

  std::string text() const {
    char line[400];
    std::snprintf(line, sizeof line,
                  "%4zu runs: ratio median %.1f %% p90 %.1f %% (closed form %.1f, %.1f); PSNR %.2f dB p90 %.2f (%.2f, "
                  "%.2f); SSIM %.4f p90 %.4f; autocorrelation %.3f; %.0f %% of intervals hold",
                  ratio.size(), quantile(ratio, 0.5), quantile(ratio, 0.9), quantile(closed_ratio, 0.5),
                  quantile(closed_ratio, 0.9), quantile(psnr, 0.5), quantile(psnr, 0.9), quantile(closed_psnr, 0.5),
                  quantile(closed_psnr, 0.9), quantile(ssim, 0.5), quantile(ssim, 0.9), quantile(correlation, 0.5),
                  intervals == 0 ? 0.0 : 100.0 * static_cast<double>(inside) / static_cast<double>(intervals));
    return line;
  }
};

bool write_or_say(const std::string& path, std::span<const std::uint8_t> bytes) {
  if (write_whole_file(path, bytes)) return true;
  std::fprintf(stderr, "quern: %s: cannot be written: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

/// Each run that was predicted, one line of a CSV file. Ratios and decibels; closed: of the closed form alone.
class RowsFile {
 public:
  /// The lines stay in memory until save().
  explicit RowsFile(const std::string& path)
      : path_(path), file_(path.empty() ? nullptr : open_memstream(&text_, &size_)) {
    if (!path.empty() && file_ == nullptr) throw std::runtime_error("no memory for the rows");
    if (file_ != nullptr)
      std::fputs(
          "input,family,codec,bound_rel,ratio,ratio_predicted,ratio_low,ratio_high,ratio_closed,psnr_db,psnr_predicted,"
          "psnr_low,psnr_high,psnr_closed,ssim,ssim_predicted,autocorrelation,autocorrelation_predicted\n",
          file_);
  }
  ~RowsFile() {
    if (file_ != nullptr) std::fclose(file_);
    std::free(text_);
  }
  RowsFile(const RowsFile&) = delete;
  RowsFile& operator=(const RowsFile&) = delete;

  /// False, with a message, when the file cannot be written.
  bool save() {
    if (path_.empty()) return true;
    const bool whole = std::ferror(file_) == 0;
    const bool closed = std::fclose(file_) == 0;
    file_ = nullptr;
    if (!whole || !closed) throw std::runtime_error("no memory for the rows");
    return write_or_say(path_, {reinterpret_cast<const std::uint8_t*>(text_), size_});
  }

  void add(const Row& row, const Prediction& p) {
    if (file_ == nullptr) return;
    const Run& run = row.run;
    const double ratio = static_cast<double>(run.raw_bytes) / static_cast<double>(run.stream_bytes);
    // A prediction is of the logarithm of the rate above the closed form's, as the row's target is.
    const auto ratio_at = [&](double log) { return ratio * exp2_of(row.targets[kRate] - log); };
    const Quantiles& r = p.targets[kRate];
    std::fprintf(file_, "%s,%s,%s,%g,%.6g,%.6g,%.6g,%.6g,%.6g", run.input.c_str(), row.family.c_str(),
                 run.codec.c_str(), run.bound_rel, ratio, ratio_at(r.middle), ratio_at(r.high), ratio_at(r.low),
                 ratio_at(0));
    if (row.known[kPsnr]) {
      const double base = *run.psnr_db - row.targets[kPsnr];
      const Quantiles& q = p.targets[kPsnr];
      std::fprintf(file_, ",%.6g,%.6g,%.6g,%.6g,%.6g", *run.psnr_db, base + q.middle, base + q.low, base + q.high,
                   base);
    } else {
      std::fputs(",,,,,", file_);
    }
    if (row.known[kSsim]) {
      const double base = base_of(run.inputs, kBaseSsim);
      std::fprintf(file_, ",%.6g,%.6g", *run.ssim, 1 + kSsimFloor - exp2_of(base + p.targets[kSsim].middle));
    } else {
      std::fputs(",,", file_);
    }
    if (row.known[kAutocorrelation]) {
      std::fprintf(file_, ",%.6g,%.6g\n", *run.autocorrelation, p.targets[kAutocorrelation].middle);
    } else {
      std::fputs(",,\n", file_);
    }
  }

 private:
  std::string path_;
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

std::map<std::string, std::vector<const Row*>> by_codec(const std::vector<Row>& rows) {
  std::map<std::string, std::vector<const Row*>> out;
  for (const Row& row : rows) out[row.run.codec].push_back(&row);
  return out;
}

/// Networks with deep features are smaller than the others, so that both fit into the library.
TrainingOptions deep_options(TrainingOptions options) {
  if (options.deep_epochs > 0) options.epochs = options.deep_epochs;
  options.hidden = std::max(options.hidden * 3 / 4, 1);
  options.experts = std::min<std::size_t>(options.experts, 2);
  return options;
}

std::string record_of(const RunsTable& table, const Arguments& args, const std::string& errors) {
  std::set<std::string> hashes;
  std::map<std::string, std::size_t> families;
  for (const Row& row : table.rows) {
    hashes.insert(row.run.sha256);
    ++families[row.family];
  }
  std::string out = "{\"runs\": " + std::to_string(table.rows.size()) +
                    ", \"seed\": " + std::to_string(args.training.seed) +
                    ", \"epochs\": " + std::to_string(args.training.epochs) +
                    (args.deep ? ", \"deep_epochs\": " + std::to_string(deep_options(args.training).epochs) : "") +
                    ", \"trainer\": \"LibTorch " TORCH_VERSION "\", \"families\": {";
  bool first = true;
  for (const auto& [family, count] : families) {
    out += (first ? "\"" : ", \"") + family + "\": " + std::to_string(count);
    first = false;
  }
  out += "}, \"later_steps\": {" + errors + "}, \"sha256\": [";
  first = true;
  for (const std::string& hash : hashes) {
    out += (first ? "\"" : ", \"") + hash + "\"";
    first = false;
  }
  return out + "]}";
}

/// A network for each codec, tested on later steps; adds a member of the record for each to `errors`. Of `rows_file`
/// null, tested runs are written nowhere.
std::vector<CodecModel> train_codecs(const RunsTable& table, const TrainingOptions& options, const std::string& what,
                                     RowsFile* rows_file, std::string& errors) {
  std::vector<CodecModel> codecs;
  for (const auto& [codec, rows] : by_codec(table.rows)) {
    codecs.push_back(train_network(rows, options));
    Errors later;
    for (const Row* row : rows) {
      if (row->part != Part::test) continue;
      const Prediction p = predict(codecs.back(), row->inputs);
      later.add(*row, p);
      if (rows_file != nullptr) rows_file->add(*row, p);
    }
    std::printf("later steps, %-9s %s\n", (codec + what).c_str(), later.text().c_str());
    std::fflush(stdout);
    errors += (errors.empty() ? "\"" : ", \"") + codec + what + "\": \"" + later.text() + "\"";
  }
  return codecs;
}

/// Trains networks for patches on some rows, and puts deep features behind the inputs of all, in place of earlier ones.
PatchNetworks use_deep_features(const std::vector<const Row*>& training, const ArrayPatches& patches,
                                const TrainingOptions& options, RunsTable& table) {
  for (Row& row : table.rows) row.inputs = row.run.inputs;
  PatchNetworks networks = train_patch_networks(training, patches, options);
  add_deep_features(networks, patches, table.rows);
  return networks;
}

std::vector<const Row*> pointers_to(const std::vector<Row>& rows) {
  std::vector<const Row*> out;
  for (const Row& row : rows) out.push_back(&row);
  return out;
}

int train(RunsTable& table, const Arguments& args, const ArrayPatches& patches, RowsFile& rows_file) {
  Model model;
  model.inputs_version = kInputsVersion;
  model.inputs = static_cast<std::uint32_t>(input_count());
  model.half_weights = true;
  model.least_bound = 1;
  for (const Row& row : table.rows) {
    if (row.run.bound_rel <= 0) continue;
    model.least_bound = std::min(model.least_bound, row.run.bound_rel);
    model.largest_bound = std::max(model.largest_bound, row.run.bound_rel);
  }
  std::string errors;
  model.codecs = train_codecs(table, args.training, "", args.deep ? nullptr : &rows_file, errors);
  if (args.deep) {
    model.deep.emplace();
    model.deep->patches = use_deep_features(pointers_to(table.rows), patches, args.training, table);
    model.deep->codecs = train_codecs(table, deep_options(args.training), " deep", &rows_file, errors);
    model.deep->usual = args.deep_usual;
  }
  model.record = record_of(table, args, errors);
  const Vector<std::uint8_t> bytes = write_model(model);
  if (bytes.size() > kMostModelBytes) {
    std::fprintf(stderr,
                 "quern: %s: not written: the model has %zu bytes, and %zu are read; lower --hidden or --experts\n",
                 args.output.c_str(), bytes.size(), kMostModelBytes);
    return 1;
  }
  if (!write_or_say(args.output, bytes)) return 2;
  std::printf("%s: %zu bytes, from %zu runs (%zu failed, %zu not read)\n", args.output.c_str(), bytes.size(),
              table.rows.size(), table.failed, table.unread);
  return 0;
}

/// The errors of a model on later steps; with deep features where they are asked for.
int test_model(RunsTable& table, const Arguments& args, const ArrayPatches& patches, RowsFile& rows_file) {
  std::ifstream file(args.test, std::ios::binary);
  const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  const Result<Model> model = read_model(bytes);
  if (!file || !model.ok() || model->inputs != input_count()) {
    std::fprintf(stderr, "quern: %s: %s\n", args.test.c_str(),
                 !file         ? "cannot be read"
                 : !model.ok() ? model.status().text().c_str()
                               : "takes other inputs than these runs have");
    return !file ? 2 : 3;
  }
  if (args.deep && !model->deep) {
    std::fprintf(stderr, "quern: %s: has no deep features; leave --features out\n", args.test.c_str());
    return 1;
  }
  if (args.deep) add_deep_features(model->deep->patches, patches, table.rows);
  for (const auto& [codec, rows] : by_codec(table.rows)) {
    const CodecModel* known = model->by_name(codec, args.deep);
    if (known == nullptr) continue;
    Errors later;
    for (const Row* row : rows) {
      if (row->part != Part::test) continue;
      const Prediction p = predict(*known, row->inputs);
      later.add(*row, p);
      rows_file.add(*row, p);
    }
    std::printf("later steps, %-9s %s\n", codec.c_str(), later.text().c_str());
  }
  return 0;
}

/// Leaves each family out once, a fifth of them at a time, and tests on those. Made-up fields train in any case.
int test_families(RunsTable& table, const Arguments& args, const ArrayPatches& patches, RowsFile& rows_file) {
  constexpr std::size_t kGroups = 5;
  std::map<std::string, std::size_t> group;
  for (const Row& row : table.rows)
    if (row.family != "made") group[row.family] = 0;
  std::size_t number = 0;
  for (auto& [family, own] : group) own = number++ % kGroups;
  const auto is_left_out = [&](const Row& row, std::size_t g) {
    return row.family != "made" && group[row.family] == g;
  };
  std::map<std::string, Errors> all;
  std::map<std::string, std::map<std::string, Errors>> each;
  const TrainingOptions options = args.deep ? deep_options(args.training) : args.training;
  for (std::size_t g = 0; g < std::min(kGroups, group.size()); ++g) {
    if (args.deep) {
      std::vector<const Row*> others;
      for (const Row& row : table.rows)
        if (!is_left_out(row, g)) others.push_back(&row);
      use_deep_features(others, patches, args.training, table);
    }
    for (const auto& [codec, rows] : by_codec(table.rows)) {
      std::vector<const Row*> others;
      for (const Row* row : rows)
        if (!is_left_out(*row, g) && row->part != Part::test) others.push_back(row);
      if (others.empty()) continue;
      const CodecModel model = train_network(others, options);
      for (const Row* row : rows) {
        if (!is_left_out(*row, g)) continue;
        const Prediction p = predict(model, row->inputs);
        each[row->family][codec].add(*row, p);
        all[codec].add(*row, p);
        rows_file.add(*row, p);
      }
    }
  }
  for (const auto& [family, codecs] : each)
    for (const auto& [codec, errors] : codecs)
      std::printf("without %-10s %-9s %s\n", family.c_str(), codec.c_str(), errors.text().c_str());
  for (const auto& [codec, errors] : all)
    std::printf("each family left out, %-9s %s\n", codec.c_str(), errors.text().c_str());
  return 0;
}

int run(int argc, char** argv) {
  Arguments args;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--runs" && has_value) {
      args.runs = argv[++i];
    } else if (word == "-o" && has_value) {
      args.output = argv[++i];
    } else if (word == "--seed" && has_value) {
      args.training.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--epochs" && has_value) {
      args.training.epochs = std::max(1, std::atoi(argv[++i]));
    } else if (word == "--deep-epochs" && has_value) {
      args.training.deep_epochs = std::max(1, std::atoi(argv[++i]));
    } else if (word == "--experts" && has_value) {
      const int experts = std::atoi(argv[++i]);
      if (experts < 1 || experts > static_cast<int>(kMostExperts)) {
        std::fprintf(stderr, "quern: --experts %s: use 1 to %zu\n", argv[i], kMostExperts);
        return 1;
      }
      args.training.experts = static_cast<std::size_t>(experts);
    } else if (word == "--without" && has_value) {
      const std::string part = argv[++i];
      if (part != "levels" && part != "hidden") {
        std::fprintf(stderr, "quern: --without %s: use levels or hidden\n", part.c_str());
        return 1;
      }
      (part == "levels" ? args.training.without_levels : args.training.without_hidden) = true;
    } else if (word == "--hidden" && has_value) {
      args.training.hidden = std::clamp(std::atoi(argv[++i]), 1, 512);
    } else if (word == "--features" && has_value) {
      const std::string features = argv[++i];
      if (features != "counts" && features != "deep" && features != "usually-deep") {
        std::fprintf(stderr, "quern: --features %s: use counts, deep or usually-deep\n", features.c_str());
        return 1;
      }
      args.deep = features != "counts";
      args.deep_usual = features == "usually-deep";
    } else if (word == "--data" && has_value) {
      args.data.emplace_back(argv[++i]);
    } else if (word == "--test" && has_value) {
      args.test = argv[++i];
    } else if (word == "--rows" && has_value) {
      args.rows = argv[++i];
    } else if (word == "--families") {
      args.families = true;
    } else {
      std::fprintf(stderr, "quern: %s: no option of train quality\n", word.c_str());
      return 1;
    }
  }
  if (args.runs.empty() || (args.output.empty() && !args.families && args.test.empty())) {
    std::fprintf(stderr, "quern: train quality needs --runs FILE and -o MODEL, --families or --test MODEL\n");
    return 1;
  }
  RunsTable table;
  std::string problem;
  if (!read_runs(args.runs, table, problem)) {
    std::fprintf(stderr, "quern: %s\n", problem.c_str());
    return 1;
  }
  ArrayPatches patches;
  if (args.deep && !read_patches(args.data, table, patches, problem)) {
    std::fprintf(stderr, "quern: %s\n", problem.c_str());
    return 1;
  }
  RowsFile rows(args.rows);
  const int result = !args.test.empty() ? test_model(table, args, patches, rows)
                     : args.families    ? test_families(table, args, patches, rows)
                                        : train(table, args, patches, rows);
  return result == 0 && !rows.save() ? 2 : result;
}

}  // namespace
}  // namespace quern::surrogate

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::strcmp(argv[1], "autoencoder") == 0)
      return quern::codec::autoencoder::train::run(argc - 2, argv + 2);
    if (argc > 1 && std::strcmp(argv[1], "superres") == 0) return quern::codec::stencil::train::run(argc - 2, argv + 2);
    return quern::surrogate::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quern: training failed: %s\n", error.what());
  }
  return 5;
}

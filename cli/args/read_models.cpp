// The arguments of quern model and quern train.
#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/raw_args.h"
#include "cli/args/values.h"

namespace quern::cli {
namespace {

/// The trainer reads its numbers itself.
void read_training_data(const RawArgs& raw, TrainArgs& out) {
  const std::string verb = "train " + raw.what;
  const bool asks_for_quality = !raw.runs.empty() || !raw.epochs.empty() || !raw.deep_epochs.empty() ||
                                !raw.experts.empty() || !raw.hidden.empty() || !raw.features.empty() ||
                                !raw.without.empty() || !raw.rows.empty() || !raw.test.empty() || raw.families;
  if (asks_for_quality)
    fail(Exit::usage, verb + ": takes --data; --runs, --epochs and their like are of train quality");
  if (raw.training.data.empty()) fail(Exit::usage, verb + ": name the arrays with --data FILE...");
  if (raw.output.empty()) fail(Exit::usage, verb + ": name the model with -o MODEL");
  const TrainingData& training = raw.training;
  out.superres = raw.what == "superres";
  out.autoencoder = !out.superres;
  if (out.superres &&
      (!training.block.empty() || !training.latents.empty() || !training.components.empty() || training.keep))
    fail(Exit::usage, verb + ": --block, --latents, --components and --keep are of train autoencoder");
  if (out.autoencoder && !training.bound.empty()) fail(Exit::usage, verb + ": --bound is of train superres");
  out.training = training;
  const std::pair<const char*, std::array<const char*, 2>> profiles[] = {
      {"linear", {"0", ""}}, {"tiny", {"8", "12"}}, {"slim", {"16", "24"}}, {"paper", {"32", "48"}}};
  if (!out.training.profile.empty()) {
    const auto* const found = std::find_if(std::begin(profiles), std::end(profiles),
                                           [&](const auto& p) { return p.first == out.training.profile; });
    const std::string channels = found == std::end(profiles) ? "" : found->second[out.superres ? 1 : 0];
    if (channels.empty())
      fail(Exit::usage, fmt::format("--profile {}: use tiny, slim{}", out.training.profile,
                                    out.superres ? " or paper" : ", paper or linear"));
    out.training.profile = channels;
  }
  out.output = raw.output;
  if (!raw.seed.empty()) out.seed = std::to_string(parse_count(raw.seed, "--seed", UINT64_MAX / 2));
  out.force = raw.force;
}

}  // namespace

void read_model_verb(const RawArgs& raw, ModelArgs& out) {
  const std::pair<const char*, ModelWork> works[] = {{"info", ModelWork::info},
                                                     {"verify", ModelWork::verify},
                                                     {"list", ModelWork::list},
                                                     {"strip", ModelWork::strip},
                                                     {"embed", ModelWork::embed}};
  const auto* work =
      std::find_if(std::begin(works), std::end(works), [&](const auto& w) { return w.first == raw.what; });
  if (work == std::end(works))
    fail(Exit::usage, fmt::format("model {}: use info, verify, list, strip or embed", raw.what));
  out.work = work->second;
  if (raw.files.size() > 1) fail(Exit::usage, "model: one file at a time");
  if (!raw.files.empty()) out.file = raw.files.front();
  const bool writes = out.work == ModelWork::strip || out.work == ModelWork::embed;
  if (writes && (out.file.empty() || raw.output.empty()))
    fail(Exit::usage, fmt::format("model {0}: name both files, as in quern model {0} FILE -o OUT", raw.what));
  if (!writes && !raw.output.empty())
    fail(Exit::usage, fmt::format("model {}: writes no file; leave -o out", raw.what));
  out.output = raw.output;
  out.models = {raw.model, raw.model_stores};
  if (out.work == ModelWork::embed && out.models.file.empty() && out.models.stores.empty())
    fail(Exit::usage, "model embed: name the model with --model FILE, or its folder with --model-store DIR");
  if (out.work != ModelWork::embed && !out.models.file.empty())
    fail(Exit::usage, fmt::format("model {}: takes no --model; name the file itself", raw.what));
  if (!writes && !out.models.stores.empty())
    fail(Exit::usage, fmt::format("model {}: takes no --model-store; quern model list DIR looks into one", raw.what));
  if (out.work == ModelWork::strip && out.models.stores.size() > 1)
    fail(Exit::usage, "model strip: one --model-store, the folder that the model goes to");
  out.force = raw.force;
  out.json = raw.json;
}

void read_train(const RawArgs& raw, TrainArgs& out) {
  if (raw.what == "autoencoder" || raw.what == "superres") return read_training_data(raw, out);
  if (raw.what != "quality")
    fail(Exit::usage, fmt::format("train {}: use train quality, autoencoder or superres", raw.what));
  const bool deep = raw.features == "deep" || raw.features == "usually-deep";
  if (!raw.features.empty() && !deep && raw.features != "counts")
    fail(Exit::usage, fmt::format("--features {}: use counts, deep or usually-deep", raw.features));
  if (!deep && !raw.training.data.empty())
    fail(Exit::usage,
         "train quality: takes --runs FILE; --data is of train autoencoder and superres, and of --features deep");
  if (deep && raw.training.data.empty())
    fail(Exit::usage, "--features " + raw.features + ": name the arrays of the runs with --data FILE...");
  out.features = raw.features;
  out.training.data = raw.training.data;
  if (raw.runs.empty()) fail(Exit::usage, "train quality: name the runs with --runs FILE");
  if (raw.output.empty() && !raw.families && raw.test.empty())
    fail(Exit::usage, "train quality: name the model with -o MODEL");
  out.runs = raw.runs;
  out.output = raw.output;
  if (!raw.seed.empty()) out.seed = std::to_string(parse_count(raw.seed, "--seed", UINT64_MAX / 2));
  if (!raw.epochs.empty()) out.epochs = std::to_string(parse_count(raw.epochs, "--epochs", 1000000));
  if (!deep && !raw.deep_epochs.empty())
    fail(Exit::usage, "--deep-epochs: goes with --features deep; without, --epochs is of all networks");
  if (!raw.deep_epochs.empty())
    out.deep_epochs = std::to_string(parse_count(raw.deep_epochs, "--deep-epochs", 1000000));
  if (!raw.experts.empty()) {
    const std::uint64_t experts = parse_count(raw.experts, "--experts", 16);
    if (experts == 0) fail(Exit::usage, "--experts 0: use 1 to 16");
    out.experts = std::to_string(experts);
  }
  if (!raw.hidden.empty()) {
    const std::uint64_t hidden = parse_count(raw.hidden, "--hidden", 512);
    if (hidden == 0) fail(Exit::usage, "--hidden 0: use 1 to 512");
    out.hidden = std::to_string(hidden);
  }
  if (!raw.without.empty() && raw.without != "levels" && raw.without != "hidden")
    fail(Exit::usage, fmt::format("--without {}: use levels or hidden", raw.without));
  out.without = raw.without;
  out.rows = raw.rows;
  out.test = raw.test;
  out.families = raw.families;
  out.force = raw.force;
}

}  // namespace quern::cli

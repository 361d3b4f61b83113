// quern train: hands over to quern-train, which stands beside this program when it was built with LibTorch.
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/files/safe_file.h"
#include "cli/messages/messages.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

std::string beside_this_program(const std::string& name) {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  if (size <= 0) return name;
  const std::string self(path, static_cast<std::size_t>(size));
  return self.substr(0, self.rfind('/') + 1) + name;
}

bool are_one_file(const std::string& a, const std::string& b) {
  std::error_code problem;
  if (a == b || std::filesystem::equivalent(a, b, problem)) return true;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(a, problem);
  return !whole.empty() && whole == std::filesystem::weakly_canonical(b, problem);
}

/// Training takes long: what can be known of its outputs is said before.
void check_before_training(const char* option, const std::string& path, const TrainArgs& args) {
  if (path.empty()) return;
  std::vector<std::pair<const char*, std::string>> inputs{{"--runs", args.runs}, {"--test", args.test}};
  for (const std::string& file : args.training.data) inputs.emplace_back("--data", file);
  for (const auto& [name, input] : inputs)
    if (!input.empty() && are_one_file(path, input))
      fail(Exit::usage, fmt::format("{}: is what {} reads; name another file with {}", path, name, option));
  std::error_code problem;
  if (std::filesystem::is_other(path, problem)) return;  // a device or a pipe
  if (std::filesystem::is_regular_file(path, problem) && !args.force)
    fail(Exit::io, fmt::format("{}: exists already; give -f to replace it, or name another with {}", path, option));
  // Its folder takes new files, or this says why not.
  const SafeFile trial(path, {.replace = args.force});
}

}  // namespace

Exit run_train(const TrainArgs& args) {
  if (!args.output.empty() && !args.rows.empty() && are_one_file(args.output, args.rows))
    fail(Exit::usage, args.rows + ": is the model's file; name another with --rows");
  check_before_training("-o", args.output, args);
  check_before_training("--rows", args.rows, args);
  std::vector<std::string> words{beside_this_program("quern-train")};
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(option);
    words.push_back(value);
  };
  if (args.autoencoder) words.emplace_back("autoencoder");
  if (args.superres) words.emplace_back("superres");
  for (const std::string& file : args.training.data) add("--data", file);
  if (args.autoencoder) {
    add("--block", args.training.block);
    add("--latents", args.training.latents);
    add("--components", args.training.components);
    add("--channels", args.training.profile);
    add("--time-budget", args.training.time_budget);
    add("--steps", args.training.steps);
    if (args.training.keep) words.emplace_back("--keep");
  }
  if (args.superres) {
    add("--channels", args.training.profile);
    add("--bound", args.training.bound);
    add("--time-budget", args.training.time_budget);
    add("--steps", args.training.steps);
  }
  add("--runs", args.runs);
  add("-o", args.output);
  add("--seed", args.seed);
  add("--epochs", args.epochs);
  add("--deep-epochs", args.deep_epochs);
  add("--experts", args.experts);
  add("--hidden", args.hidden);
  add("--features", args.features);
  add("--without", args.without);
  add("--rows", args.rows);
  add("--test", args.test);
  if (args.families) words.emplace_back("--families");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(pointers.front(), pointers.data());
  if (errno == ENOENT)
    fail(Exit::usage, "this build cannot train: quern-train was not built, for want of LibTorch (libtorch-dev)");
  fail_errno(words.front(), "run");
}

}  // namespace quern::cli

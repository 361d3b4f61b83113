// quern train: hands over to quern-train, which stands beside this program when it was built with LibTorch.
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <vector>

#include "cli/files/file_names.h"
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

}  // namespace

Exit run_train(const TrainArgs& args) {
  if (!args.output.empty() && !args.force && access(args.output.c_str(), F_OK) == 0)
    fail(Exit::usage, args.output + ": exists; give -f to replace it");
  std::vector<std::string> words{beside_this_program("quern-train"), "--runs", args.runs};
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(option);
    words.push_back(value);
  };
  add("-o", args.output);
  add("--seed", args.seed);
  add("--epochs", args.epochs);
  add("--experts", args.experts);
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

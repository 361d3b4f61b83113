// Starts h5repack, waits, renames its output into place.
#include "cli/h5_repack.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "cli/exit_codes.h"
#include "cli/file_names.h"
#include "cli/h5_file.h"
#include "cli/safe_file.h"

namespace quern::cli {
namespace {

/// The environment with our plugin's folder first.
std::vector<std::string> child_environment() {
  const std::string name = "HDF5_PLUGIN_PATH=";
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string(*entry).starts_with(name)) out.emplace_back(*entry);
  const std::string own = own_plugin_folder();
  const std::string given = environment("HDF5_PLUGIN_PATH");
  if (!own.empty() || !given.empty()) out.push_back(name + own + (own.empty() || given.empty() ? "" : ":") + given);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

int run_child(std::vector<std::string> words) {
  std::vector<std::string> environment_words = child_environment();
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> variables = pointers(environment_words);
  pid_t child = 0;
  const int error = posix_spawnp(&child, "h5repack", nullptr, nullptr, arguments.data(), variables.data());
  if (error == ENOENT) fail(Exit::resource, "h5repack was not found; install it (Debian: hdf5-tools)");
  if (error != 0) fail(Exit::resource, fmt::format("h5repack cannot be started: {}", errno_text(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail(Exit::resource, fmt::format("h5repack cannot be waited for: {}", errno_text(errno)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

bool h5repack_can_name(const std::string& dataset) { return dataset.find_first_of(",:") == std::string::npos; }

void run_h5repack(const std::vector<std::string>& options, const std::string& input, const OutputArgs& output,
                  const std::function<void(const std::string& path)>& inspect) {
  SafeFile::Options how;
  how.replace = output.force;
  how.name_only = true;
  SafeFile file(output.path, how);
  std::vector<std::string> words{"h5repack", "--enable-error-stack"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(input);
  words.push_back(file.temporary_path());
  if (const int code = run_child(std::move(words)); code != 0)
    fail(Exit::io, fmt::format("{}: h5repack failed ({}); its reasons stand above", input, code));
  inspect(file.temporary_path());
  file.commit();
}

}  // namespace quern::cli

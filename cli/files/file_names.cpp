// Output names.
#include "cli/files/file_names.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "cli/args/exit_codes.h"

namespace quern::cli {

std::string environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this program changes the environment
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

std::string temporary_folder() {
  std::string chosen = environment("TMPDIR");
  return chosen.empty() ? "/tmp" : chosen;
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_there(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0;
}

std::string base_name(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string variable_output(const std::string& path, const std::string& variable) {
  const std::size_t name_at = path.size() - base_name(path).size();
  const std::size_t dot = path.find_last_of('.');
  std::string stem = dot == std::string::npos || dot <= name_at ? path : path.substr(0, dot);
  std::string part = variable;
  while (!part.empty() && part.front() == '/') part.erase(part.begin());
  std::replace(part.begin(), part.end(), '/', '.');
  return stem + "." + part + kStreamSuffix;
}

std::string in_folder(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

std::string restored_name(const std::string& path) {
  const std::string suffix = kStreamSuffix;
  if (path == "-") return "-";
  if (!path.ends_with(suffix) || base_name(path).size() == suffix.size())
    fail(Exit::usage, path + ": does not end in .qn, so there is no name for the output; give -o OUT");
  return path.substr(0, path.size() - suffix.size());
}

}  // namespace quern::cli

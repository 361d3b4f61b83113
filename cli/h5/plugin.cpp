// Asks HDF5 where it looks for plugins and whether it has quern's; where not, looks why.
#include "cli/h5/plugin.h"

#include <dlfcn.h>
#include <hdf5.h>
#include <unistd.h>

#include <array>
#include <climits>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/files/file_names.h"
#include "cli/h5/file.h"

namespace quern::cli {
namespace {

/// The folder of the running program; empty when the system does not tell.
std::string program_folder() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) return {};
  const std::string whole(path.data(), static_cast<std::size_t>(length));
  return whole.substr(0, whole.rfind('/'));
}

/// The build tree that this program lies in; empty where it is installed.
std::string build_tree() {
  const std::string folder = program_folder();
  const std::size_t slash = folder.rfind('/');
  if (slash == std::string::npos || slash == 0) return {};
  const std::string tree = folder.substr(0, slash);
  return access(in_folder(tree, "CMakeCache.txt").c_str(), R_OK) == 0 ? tree : std::string();
}

/// As a shell takes it.
std::string shell_word(const std::string& path) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-";
  if (path.find_first_not_of(kPlain) == std::string::npos) return path;
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// What stands in the way in one folder.
std::string look_into(const std::string& folder) {
  const std::string file = in_folder(folder, "libh5quern.so");
  if (!is_directory(folder)) return folder + ": no such folder";
  if (access(file.c_str(), R_OK) != 0) return folder + ": no libh5quern.so";
  void* library = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return fmt::format("{}: it does not load: {}", file, dlerror());  // NOLINT: one thread
  const bool is_plugin = dlsym(library, "H5PLget_plugin_info") != nullptr;
  dlclose(library);
  return file + (is_plugin ? ": loads, but this HDF5 does not take it; it may be built for another version"
                           : ": is no HDF5 plugin");
}

}  // namespace

void prepare_filter() {
  h5_prepare_command();
  static_cast<void>(quern_hdf5_register());  // reading says what is missing, where it is needed at all
}

PluginState examine_plugin() {
  h5_prepare_command();
  PluginState out;
  unsigned count = 0;
  if (H5PLsize(&count) < 0) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    std::array<char, PATH_MAX> folder{};
    if (H5PLget(i, folder.data(), folder.size()) > 0) out.folders.emplace_back(folder.data());
  }
  out.available = H5Zfilter_avail(QUERN_HDF5_FILTER_ID) > 0;
  H5Eclear2(H5E_DEFAULT);
  if (out.available) {
    for (const std::string& folder : out.folders)
      if (access(in_folder(folder, "libh5quern.so").c_str(), R_OK) == 0) {
        out.text = fmt::format("filter {} is loaded from {}", QUERN_HDF5_FILTER_ID, folder);
        return out;
      }
    out.text = fmt::format("filter {} is available", QUERN_HDF5_FILTER_ID);
    return out;
  }
  out.text = "HDF5 does not find libh5quern.so";
  for (const std::string& folder : out.folders) out.text += "; " + look_into(folder);
  out.text += "; type " + plugin_advice();
  return out;
}

std::string plugin_advice() {
  std::string folder = own_plugin_folder();
  std::string build;
  if (folder.empty()) {
    const std::string tree = build_tree();
    if (tree.empty()) return "export HDF5_PLUGIN_PATH=FOLDER, with the folder that holds libh5quern.so";
    folder = in_folder(tree, "plugins/" QUERN_HDF5_FLAVOUR);
    build = fmt::format("cmake --build {} --target h5quern_" QUERN_HDF5_FLAVOUR " && ", shell_word(tree));
  }
  // Folders that are set already stay.
  const bool is_set = !environment("HDF5_PLUGIN_PATH").empty();
  return fmt::format("{}export HDF5_PLUGIN_PATH={}{}", build, shell_word(folder),
                     is_set ? ":\"$HDF5_PLUGIN_PATH\"" : "");
}

}  // namespace quern::cli

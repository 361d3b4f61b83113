// Asks HDF5 where it looks for plugins and whether it has quern's; where not, looks why.
#include "cli/h5_plugin.h"

#include <dlfcn.h>
#include <hdf5.h>
#include <unistd.h>

#include <array>
#include <climits>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/file_names.h"
#include "cli/h5_file.h"

namespace quern::cli {
namespace {

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
  const std::string own = own_plugin_folder();
  out.text += own.empty() ? "; set HDF5_PLUGIN_PATH to its folder" : fmt::format("; set HDF5_PLUGIN_PATH={}", own);
  return out;
}

}  // namespace quern::cli

// Loads the module at the first HDF5 or netCDF file: the libraries behind it take longer to load than a small array
// takes to compress.
#include "cli/files/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>

#include <fmt/format.h>

#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

struct Loaded {
  const FilesModule* module = nullptr;
  std::string why;
};

std::string module_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  std::string folder(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/'));
  return folder + "/" QUERN_FILES_MODULE_FOLDER "/quern_files.so";
}

Loaded load() {
  Loaded out;
  const std::string path = module_path();
  if (access(path.c_str(), R_OK) != 0) {
    if (path.find("/pyquern/bin/") != std::string::npos) {
      out.why =
          "the command of the Python package does not read HDF5 and netCDF; use pyquern.hdf5 from Python, or the "
          "Debian package quern";
      return out;
    }
    out.why = fmt::format(
        "the part of quern that reads and writes HDF5 and netCDF is not there ({}); install quern again as a whole, or "
        "build the target quern_files",
        path);
    return out;
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    out.why = fmt::format("the part of quern that reads and writes HDF5 and netCDF does not load: {}",
                          dlerror());  // NOLINT: one thread
    return out;
  }
  const auto entry = reinterpret_cast<FilesModuleEntry>(dlsym(library, kFilesModuleEntry));
  const FilesModule* module = entry == nullptr ? nullptr : entry();
  if (module == nullptr || std::strcmp(module->build, QUERN_FILES_MODULE_BUILD) != 0) {
    out.why = fmt::format("{} belongs to another build of quern; install quern again as a whole", path);
    return out;
  }
  out.module = module;
  return out;
}

const Loaded& files_module() {
  static const Loaded loaded = load();
  return loaded;
}

}  // namespace

Exit run_h5(const H5Args& args) {
  const Loaded& loaded = files_module();
  if (loaded.module == nullptr) fail(Exit::resource, "h5: " + loaded.why);
  return loaded.module->run_h5(args);
}

void prepare_filter() {
  // Opening the file says what is missing.
  if (files_module().module != nullptr) files_module().module->prepare_filter();
}

PluginState examine_plugin() {
  const Loaded& loaded = files_module();
  return loaded.module == nullptr ? PluginState{false, {}, loaded.why} : loaded.module->examine_plugin();
}

}  // namespace quern::cli

const quern::io::LibraryFiles* quern::io::library_files(std::string& why) {
  const cli::Loaded& loaded = cli::files_module();
  why = loaded.why;
  return loaded.module == nullptr ? nullptr : loaded.module->files;
}

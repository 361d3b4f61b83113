// What the module with HDF5 and netCDF gives the command. Both are of one build: the command takes no other.
#pragma once

#include <string>

#include "cli/args/args.h"
#include "cli/args/exit_codes.h"
#include "cli/h5/plugin.h"
#include "libcompress/io/library/library_files.h"

#define QUERN_FILES_MODULE_BUILD QUERN_VERSION " " __VERSION__

namespace quern::cli {

struct FilesModule {
  const char* build;              ///< QUERN_FILES_MODULE_BUILD
  const io::LibraryFiles* files;  ///< null when neither library is built in
  Exit (*run_h5)(const H5Args& args);
  void (*prepare_filter)();
  PluginState (*examine_plugin)();
};

using FilesModuleEntry = const FilesModule* (*)();
inline constexpr const char* kFilesModuleEntry = "quern_files_module";

}  // namespace quern::cli

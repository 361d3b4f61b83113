// The one function that the module shows.
#include "cli/files/module.h"
#include "cli/verbs/verbs.h"

extern "C" __attribute__((visibility("default"))) const quern::cli::FilesModule* quern_files_module() {
  using namespace quern;
  const io::LibraryFiles* files = nullptr;
#ifdef QUERN_HAVE_LIBRARY_FILES
  std::string why;
  files = io::library_files(why);
#endif
  static const cli::FilesModule module{QUERN_FILES_MODULE_BUILD, files, cli::run_h5, cli::prepare_filter,
                                       cli::examine_plugin};
  return &module;
}

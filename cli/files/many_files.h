// Inputs of a run over many files: folders searched with -r, lists read with --files-from.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace quern::cli {

struct FoundFile {
  std::string path;
  /// The path below the folder that was named, which the output's path repeats; the file's name for one named itself.
  std::string below;
};

struct FoundFiles {
  std::vector<FoundFile> files;  ///< in the order of the names given; below a folder in the order of their bytes
  std::uint64_t others = 0;      ///< files below the folders that `takes` refused
};

/// The files named, and those below folders that `takes` says yes to. Hidden files and folders and symbolic links are
/// passed over: a link may lead out of the folder or round in a circle. Throws CliError: a folder without `recursive`,
/// a folder that is missing or cannot be read.
FoundFiles find_files(const std::vector<std::string>& names, bool recursive,
                      const std::function<bool(const std::string&)>& takes);

/// Names in a file ("-": standard input): one a line, or each ended by a zero byte as `find -print0` writes them.
/// Empty ones are passed over. Throws CliError.
std::vector<std::string> read_file_list(const std::string& path);

/// Makes the folders above `path` that are missing. Throws CliError.
void make_folders_for(const std::string& path);

}  // namespace quern::cli

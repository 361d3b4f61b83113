// Folders are walked by name order, so that two runs see the same list.
#include "cli/files/many_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <system_error>

#include "cli/args/exit_codes.h"
#include "cli/files/file_names.h"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

class FolderWalk {
 public:
  FolderWalk(const std::function<bool(const std::string&)>& takes, FoundFiles& found) : takes_(takes), found_(found) {}

  /// `below` is the path from the folder that was named, empty for that folder itself.
  void walk(const std::string& folder, const std::string& below) {
    for (const fs::directory_entry& entry : sorted_entries(folder)) {
      const std::string name = entry.path().filename().string();
      std::error_code failed;
      if (name.starts_with('.') || entry.is_symlink(failed)) continue;
      const std::string path = in_folder(folder, name);
      const std::string here = below.empty() ? name : in_folder(below, name);
      if (entry.is_directory(failed)) {
        walk(path, here);
      } else if (entry.is_regular_file(failed)) {
        if (takes_(path)) {
          found_.files.push_back({path, here});
        } else {
          ++found_.others;
        }
      }
    }
  }

 private:
  static std::vector<fs::directory_entry> sorted_entries(const std::string& folder) {
    std::error_code failed;
    fs::directory_iterator at(folder, failed);
    std::vector<fs::directory_entry> entries;
    for (const fs::directory_iterator end; !failed && at != end; at.increment(failed)) entries.push_back(*at);
    if (failed) fail(Exit::io, folder + ": cannot be listed: " + failed.message());
    std::sort(entries.begin(), entries.end());
    return entries;
  }

  const std::function<bool(const std::string&)>& takes_;
  FoundFiles& found_;
};

}  // namespace

FoundFiles find_files(const std::vector<std::string>& names, bool recursive,
                      const std::function<bool(const std::string&)>& takes) {
  FoundFiles found;
  for (const std::string& name : names) {
    if (name == "-" || !is_directory(name)) {
      if (name.ends_with('/')) fail(Exit::io, name + ": there is no such folder");
      found.files.push_back({name, base_name(name)});
    } else if (recursive) {
      FolderWalk(takes, found).walk(name, "");
    } else {
      fail(Exit::io, name + ": is a directory; -r takes the files below it");
    }
  }
  return found;
}

std::vector<std::string> read_file_list(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) fail_errno(path, "open");
  }
  std::istream& in = path == "-" ? std::cin : file;
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) fail_errno(path == "-" ? "standard input" : path, "read");
  const bool zeros = text.find('\0') != std::string::npos;
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(zeros ? '\0' : '\n', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    if (!zeros && name.ends_with('\r')) name.pop_back();
    if (!name.empty()) names.push_back(std::move(name));
    begin = end + 1;
  }
  return names;
}

void make_folders_for(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) return;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) fail(Exit::io, folder.string() + ": cannot be made: " + failed.message());
}

}  // namespace quern::cli

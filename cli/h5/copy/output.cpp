// Temporary file, copy, comparison, rename.
#include "cli/h5/copy/output.h"

#include <sys/stat.h>

#include <utility>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/files/memory.h"
#include "cli/files/safe_file.h"

namespace quern::cli {

std::uint64_t write_h5_output(const H5Args& args, hid_t from, const H5Tree& tree, const H5Changes& changes,
                              const H5Comparison& comparison, const AcceptBytes& accept) {
  SafeFile file(args.output.path, {.replace = args.output.force, .mode = mode_like(args.input)});
  if (file.is_direct()) fail(Exit::io, args.output.path + ": HDF5 files need seeking; name a regular file");
  const std::uint64_t memory = memory_limit(args.run) / 8;
  {
    H5Id to = h5_create_like(from, file.temporary_path());
    h5_copy_objects(from, to.get(), tree, changes, memory);
    h5_check(H5Fflush(to.get(), H5F_SCOPE_LOCAL), "write the file (is the disk full?)");
  }
  h5_copy_user_block(from, args.input, file.temporary_path());
  const std::uint64_t bytes = file_bytes(file.temporary_path());
  if (accept && !accept(bytes)) return bytes;
  {
    const H5Id to = h5_open(file.temporary_path());
    h5_compare(from, tree, to.get(), comparison, memory);
  }
  file.commit();
  return bytes;
}

std::uint64_t file_bytes(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

std::string datasets_text(std::size_t count) { return fmt::format("{} dataset{}", count, count == 1 ? "" : "s"); }

std::string count_text(const std::vector<std::string>& groups) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const std::string& group : groups) {
    bool known = false;
    for (auto& [name, count] : counts)
      if (name == group) known = ++count != 0;
    if (!known) counts.emplace_back(group, 1);
  }
  std::string out;
  for (const auto& [name, count] : counts) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, name);
  return out;
}

}  // namespace quern::cli

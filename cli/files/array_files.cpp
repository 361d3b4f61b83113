#include "cli/files/array_files.h"

#include <sys/stat.h>

#include <quern/io.h>

#include "cli/files/file_names.h"

namespace quern::cli {

bool is_array_file(const std::string& path, const DataArgs& data) {
  if (io::file_kind(path) != io::FileKind::raw || io::name_tells_array(path)) return true;
  if (!data.dtype || !data.shape || path.ends_with(kStreamSuffix)) return false;
  struct stat info {};
  return stat(path.c_str(), &info) == 0 &&
         static_cast<std::uint64_t>(info.st_size) == data.skip_bytes + data.shape->elems() * dtype_bytes(*data.dtype);
}

}  // namespace quern::cli

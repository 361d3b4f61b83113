// The trainer reads arrays as they lie in files; others are converted by quern.
#include "surrogate/train/stored_array.h"

#include "libcompress/io/library/library_files.h"
#include "models/sha256.h"

namespace quern::io {

const LibraryFiles* library_files(std::string& why) {
  why = "training reads .npy files and raw files whose names tell type and shape (NAME_10x20.f32)";
  return nullptr;
}

}  // namespace quern::io

namespace quern::surrogate {

bool read_stored_array(const std::string& path, StoredArray& array, std::string& problem) {
  const auto kind = io::input_kind(path, problem);
  if (!kind.ok()) return false;
  const auto reader = io::open_reader(path, *kind, {}, problem);
  if (!reader.ok()) return false;
  array.meta = (*reader)->meta();
  array.bytes.resize(array.meta.shape.elems() * dtype_bytes(array.meta.dtype));
  const auto got = (*reader)->read(array.bytes);
  if (!got.ok() || *got != array.bytes.size()) {
    problem = path + ": cannot be read whole";
    return false;
  }
  array.sha256 = models::hex(models::sha256(array.bytes));
  return true;
}

}  // namespace quern::surrogate

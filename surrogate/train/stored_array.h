// Whole arrays as they lie in files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <quern/array.h>
#include <quern/io.h>

namespace quern::surrogate {

struct StoredArray {
  io::ArrayMeta meta;
  std::vector<std::uint8_t> bytes;
  std::string sha256;  ///< of the bytes, in hexadecimal digits

  ArrayView view() const { return {bytes.data(), meta.dtype, meta.shape}; }
};

/// Reads a .npy file, or a raw one whose name tells type and shape. On failure `problem` says what is wrong in one line.
bool read_stored_array(const std::string& path, StoredArray& array, std::string& problem);

}  // namespace quern::surrogate

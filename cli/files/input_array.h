// One array of an input file, opened and described, and ways to have all of it addressable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <quern/array.h>
#include <quern/io.h>

#include "cli/args/args.h"
#include "cli/files/byte_streams.h"
#include "cli/files/memory.h"

namespace quern::cli {

struct InputArray {
  std::string path;
  std::string label;  ///< for messages: the path, with the dataset's name when one was chosen
  std::string dataset;
  io::FileKind kind = io::FileKind::raw;
  std::unique_ptr<io::ArrayReader> reader;
  io::ArrayMeta meta;
  /// From the command line and from the file, without repetitions.
  Vector<std::uint64_t> fill_bits;

  std::uint64_t bytes() const { return meta.shape.elems() * dtype_bytes(meta.dtype); }
};

/// Opens `path`; for raw files a type or shape that contradicts the file's own name is refused. Throws CliError.
InputArray open_input(const std::string& path, const std::string& dataset, const DataArgs& data);

/// Throws CliError with the library's own sentence about a file that is no stream.
[[noreturn]] void fail_file(const Status& status, const std::string& detail);

/// All elements of an array in addressable memory. Move-only.
class WholeArray {
 public:
  /// Maps the file or reads it into memory; nothing when that would take more than `memory` bytes.
  static bool fits(const InputArray& input, std::uint64_t memory);
  /// Takes what fits() allowed.
  static WholeArray load(InputArray& input);
  /// Reads everything into a temporary file and maps that.
  static WholeArray spool(InputArray& input);

  ArrayView view() const { return {data_, dtype_, shape_}; }
  /// Bytes of process memory this array holds; mapped files count nothing.
  std::uint64_t memory_bytes() const { return buffer_.size(); }

 private:
  const void* data_ = nullptr;
  DType dtype_ = DType::f32;
  Shape shape_;
  Buffer buffer_;
  Mapping mapping_;
};

/// Fills `out` from the reader; fewer elements than promised throw.
void read_exactly(InputArray& input, std::span<std::uint8_t> out);
/// To be called after the last element: a pipe that goes on throws.
void expect_end(InputArray& input);

}  // namespace quern::cli

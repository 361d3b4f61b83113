// The values of a dataset piece by piece: boxes that end where chunks do and take a bounded number of bytes.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <vector>

#include "cli/files/memory.h"

namespace quern::cli {

using Extents = std::vector<hsize_t>;

struct H5Box {
  Extents origin;
  Extents extents;  ///< clipped at the dataset's end; empty for a single value
  std::uint64_t elems() const;
};

/// Goes through an array box by box, in C order of the boxes.
class H5Boxes {
 public:
  /// `grid`: extents of a chunk, or empty. A box has at most `bytes` bytes unless a single chunk has more.
  H5Boxes(const Extents& extents, const Extents& grid, std::uint64_t element_bytes, std::uint64_t bytes);
  /// The next box; false behind the last, and at once for an array without elements.
  bool next(H5Box& box);
  std::uint64_t largest_elems() const;

 private:
  Extents extents_;
  Extents step_;
  Extents at_;
  bool done_ = false;
};

/// Extents of a simple space; empty for a single value.
Extents h5_extents(hid_t space);
/// Extents of the chunks; empty when the layout is another.
Extents h5_chunk(hid_t dcpl);
/// The dataset's type with its numbers in the machine's byte order: no value is converted, only turned round.
hid_t h5_machine_type(hid_t type);

/// Reads or writes one box with a memory type. Throws CliError (io).
void h5_read_box(hid_t dataset, hid_t memory_type, const H5Box& box, void* out);
void h5_write_box(hid_t dataset, hid_t memory_type, const H5Box& box, const void* values);

}  // namespace quern::cli

// Arrays that lie in a file as one run of elements: the common half of the raw and .npy kinds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <quern/io.h>

#include "libcompress/io/posix_file.h"

namespace quern::io {

/// Where the elements lie and how.
struct FlatLayout {
  std::uint64_t offset = 0;  ///< of the first element in the file; the file is positioned there
  bool swap_bytes = false;   ///< stored in the byte order that is not the machine's
};

/// Reads in order; maps regular files whose elements are aligned and in native byte order. Takes the file over.
/// When the size of the input is not known, too few or too many bytes are found at the end and reported then.
std::unique_ptr<ArrayReader> make_flat_reader(PosixFile file, ArrayMeta meta, const FlatLayout& layout);

/// Writes `head`, then the elements as they come. Takes the file over; refuses more or fewer bytes than the array has.
std::unique_ptr<ArrayWriter> make_flat_writer(PosixFile file, std::uint64_t array_bytes,
                                              std::vector<std::uint8_t> head);

/// True when values stored in that order need swapping on this machine.
bool needs_swap(bool stored_big_endian, std::size_t element_bytes);

}  // namespace quern::io

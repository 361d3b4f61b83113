// Shapes of chunks for packed datasets.
#pragma once

#include <cstdint>

#include "cli/h5/boxes.h"

namespace quern::cli {

/// Chunks below this many bytes leave a codec little to share.
inline constexpr std::uint64_t kTinyChunkBytes = UINT64_C(64) << 10;

/// For a dataset without chunks: slabs along the slowest axes, of at most 4 MiB.
Extents h5_new_chunk(const Extents& extents, std::uint64_t element_bytes);
/// Several chunks of the old shape as one of 1 to 4 MiB; the old shape where it has that already.
Extents h5_merged_chunk(const Extents& extents, const Extents& chunk, std::uint64_t element_bytes);

std::uint64_t h5_bytes_of_chunk(const Extents& chunk, std::uint64_t element_bytes);

}  // namespace quern::cli

// The chunks of arrays that no codec is used for: runs of elements.
#pragma once

#include <cstdint>

#include <quern/codec.h>
#include <quern/dtype.h>

namespace quern {

inline constexpr std::uint64_t kStoredChunkBytes = 32768;

/// The grid that encoders choose. Host and device code use it alike.
constexpr ChunkGrid stored_grid(std::uint64_t elems, DType dtype) {
  const std::uint64_t chunk = kStoredChunkBytes / dtype_bytes(dtype);
  const std::uint64_t own = elems < chunk ? elems : chunk;
  return {{1, 1, elems}, {1, 1, own == 0 ? 1 : own}};
}

}  // namespace quern

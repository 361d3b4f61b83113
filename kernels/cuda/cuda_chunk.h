// A chunk of an array in device memory, as chunk kernels are told of it.
#pragma once

#include <cstdint>

#include "kernels/core/chunk_task.h"

namespace quern::kernels {

/// A box of values. No extents: there is nothing to do.
struct CudaChunk {
  void* values = nullptr;  ///< the first one
  ChunkBox box{{0, 0, 0}, {0, 0}};
  std::uint32_t phase = 0;  ///< y + x / 32 of the first one in its segment, modulo 8 (core/mask_scan.h)
  std::uint32_t slot = 0;   ///< number of the place that an encoder's results go to

  [[gnu::always_inline]] constexpr bool empty() const {
    return box.extents[0] == 0 || box.extents[1] == 0 || box.extents[2] == 0;
  }
};

/// What the encoder saw of a chunk beside codes: its part of the scan of its segment.
struct ChunkScan {
  std::uint32_t equal_pairs = 0;
  std::uint32_t negative_zeros = 0;
  std::uint32_t mandatory = 0;  ///< not 0: a value that must be masked
};

/// What the encoder is to look for beside: declared fill values (bit patterns), and where it leaves what it saw of the
/// chunk with slot s. Nothing when counts is null.
struct ScanRequest {
  const std::uint64_t* fills = nullptr;
  std::uint32_t fill_count = 0;
  ChunkScan* counts = nullptr;
};

/// What is stored of a chunk; bytes 0: there is nothing to decode. The bytes may be anything.
struct StoredChunk {
  const std::uint8_t* at = nullptr;
  std::uint32_t bytes = 0;
};

}  // namespace quern::kernels

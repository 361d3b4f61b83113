// A chunk of an array in device memory, as chunk kernels are told of it.
#pragma once

#include <cstdint>

#include "kernels/common/chunk_box.h"

namespace quern::kernels {

/// A box of values. No extents: there is nothing to do.
struct CudaChunk {
  void* values = nullptr;  ///< the first one
  ChunkBox box{{0, 0, 0}, {0, 0}};
  std::uint32_t phase = 0;  ///< y + x / 32 of the first one in its segment, modulo 8 (kernels/mask/scan.h)
  std::uint32_t slot = 0;   ///< number of the place that an encoder's results go to

  [[gnu::always_inline]] constexpr bool empty() const {
    // All three are asked for at once.
    return static_cast<int>(box.extents[0] == 0) + static_cast<int>(box.extents[1] == 0) +
               static_cast<int>(box.extents[2] == 0) !=
           0;
  }
};

/// Set in the size of an encoded chunk whose parts the codec has yet to join.
inline constexpr std::uint32_t kChunkInParts = 0x80000000u;

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

/// How a chunk is stored that no codec has to look at.
enum class StoredForm : std::uint32_t {
  coded,  ///< it is the codec's
  raw,    ///< its values in C order
  zeros,  ///< not at all: zeros until other values are written there
};

/// What is stored of a chunk; coded, with no bytes: there is nothing to decode. The bytes may be anything, but those of
/// a raw chunk are as many as its values have.
struct StoredChunk {
  const std::uint8_t* at = nullptr;
  std::uint32_t bytes = 0;
  StoredForm form = StoredForm::coded;
};

}  // namespace quern::kernels

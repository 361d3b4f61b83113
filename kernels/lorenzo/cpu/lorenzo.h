// Entry points of the lorenzo kernels on the CPU, one set for each instruction set, chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"
#include "kernels/lorenzo/chunk_task.h"

namespace quern::kernels {

/// Every tile is as it should be.
inline constexpr std::size_t kNoTile = SIZE_MAX;

struct LorenzoKernels {
  /// Encodes a chunk of `box` at `in`; returns bytes written to `out`, which holds max_lorenzo_chunk_bytes(). Never
  /// fails.
  std::size_t (*encode)(const ChunkRules& rules, const void* in, const ChunkBox& box, std::uint8_t* out, void* scratch);
  /// Decodes a chunk into `out`; false on bytes no encoder writes (out may be partly written then, never beyond the
  /// box).
  bool (*decode)(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes, void* out, const ChunkBox& box,
                 void* scratch);
  /// Estimated bytes of one tile at `in` for every predictor that fits the tile shape (others get UINT32_MAX): what an
  /// encoder that plans an array compares. Integer arithmetic only.
  void (*estimate)(const ChunkRules& rules, const void* in, const ChunkBox& tile, std::uint32_t (&bytes)[kPredictors],
                   void* scratch);
  /// The first tile of a chunk, as it is stored, that does not hold what the encoder makes of these elements under these
  /// rules; kNoTile where all do. Takes check_scratch_bytes.
  std::size_t (*find_encode_fault)(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes,
                                   const void* elements, const ChunkBox& box, void* scratch);
  /// The first tile of a chunk that does not decode to these elements, bit for bit; kNoTile where all do. Takes
  /// decode_scratch_bytes.
  std::size_t (*find_decode_fault)(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes,
                                   const void* elements, const ChunkBox& box, void* scratch);
  std::size_t encode_scratch_bytes;  ///< for encode and estimate; 64-byte aligned
  std::size_t decode_scratch_bytes;
  std::size_t check_scratch_bytes;
};

/// The kernels of an available level.
const LorenzoKernels& lorenzo_kernels(IsaLevel level);

}  // namespace quern::kernels

// One chunk to bytes and back. The stored form is specified in docs/format-interp.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/dtype.h>
#include <quern/status.h>

#include "codecs/interp/rules.h"
#include "coding/box_rows.h"
#include "kernels/entropy/cpu/residual_kernels.h"
#include "kernels/interp/cpu/interp.h"

namespace quern::codec::interp {

/// First byte of a chunk.
enum class Mode : std::uint8_t {
  raw = 0,       ///< the elements, little-endian
  constant = 1,  ///< one element
  narrow = 2,    ///< codes, for values of 32 bits
  wide = 3,      ///< codes, for values of 64 bits
};

/// What all chunks of an array share.
struct ChunkSpec {
  DType dtype = DType::f32;
  std::array<std::uint64_t, 3> most{1, 1, 1};  ///< extents of a full chunk
  kernels::InterpTile tile;
  Predictors predictors{};
  double bound = 0;  ///< encoders know it
  const kernels::InterpKernels* kernels = nullptr;
  const kernels::ResidualKernels* residuals = nullptr;

  std::size_t raw_bytes() const { return static_cast<std::size_t>(most[0] * most[1] * most[2]) * dtype_bytes(dtype); }
};

/// Codes lie in sections, coarse to fine: one for each of the finest levels, one for all that is coarser.
inline constexpr unsigned kOwnSections = 2;
inline unsigned section_count(const kernels::InterpTile& tile) {
  return (tile.levels() < kOwnSections ? tile.levels() : kOwnSections) + 1;
}
/// The section of a level; anchors are of level tile.levels().
inline unsigned section_of(const kernels::InterpTile& tile, unsigned level) {
  const unsigned last = section_count(tile) - 1;
  return level < last ? last - level : 0;
}

/// Beyond what a full chunk takes: a smaller one cuts its memory with other gaps.
inline constexpr std::size_t kScratchSpare = 65536;

inline std::size_t max_chunk_bytes(const ChunkSpec& spec) { return 1 + spec.raw_bytes(); }

std::size_t encode_scratch_bytes(const ChunkSpec& spec);
/// Writes at most max_chunk_bytes to `out` and returns the count. `in` is no larger than spec.most along any axis. May
/// throw std::bad_alloc.
Result<std::size_t> encode_chunk(const ChunkSpec& spec, const ConstBox3& in, std::span<std::uint8_t> out,
                                 std::span<std::uint8_t> scratch);

std::size_t decode_scratch_bytes(const ChunkSpec& spec);
/// Fills `out` or fails with `corrupt`; uses every byte of `in`.
Status decode_chunk(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                    std::span<std::uint8_t> scratch);

/// The first bytes of a chunk that hold the levels from `levels` down to 1, one count for each; empty when the chunk has
/// to be whole.
Result<Vector<std::uint64_t>> level_cuts(const ChunkSpec& spec, std::span<const std::uint8_t> chunk, unsigned levels);
/// Decodes the points of a level of at least 1. `in` is the chunk, or the beginning of it that holds the level; `extents`
/// are the chunk's.
Status decode_level(const ChunkSpec& spec, std::span<const std::uint8_t> in,
                    const std::array<std::uint64_t, 3>& extents, unsigned level, const MutableBox3& out,
                    std::span<std::uint8_t> scratch);

using coding::row_offset;
using coding::special_row;

}  // namespace quern::codec::interp

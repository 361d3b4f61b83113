// One chunk to bytes and back: picks the smallest of raw, constant, coded (keys, differences, section) and, when asked
// for, zstd. The stored form is described in README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/dtype.h>
#include <quern/status.h>

#include "codecs/lossless/tokens.h"

namespace quern::codec::lossless {

/// First byte of a chunk.
enum class Mode : std::uint8_t {
  raw = 0,          ///< the elements, little-endian
  constant = 1,     ///< one element
  coded = 2,        ///< shift, orders, optional dictionary, section of folded differences
  zstd = 3,         ///< the elements, packed by zstd
  zstd_planes = 4,  ///< the elements' first bytes, then their second bytes, ..., packed by zstd
};

/// Bit of the byte after the shift that says a dictionary follows; the bits below are Orders::packed.
inline constexpr std::uint8_t kDictionaryFlag = 0x40;

/// What all chunks of an array share. `zstd_level` 0: the zstd modes are not used (and refused by the decoder).
struct ChunkSpec {
  DType dtype = DType::f32;
  RowGrid most;  ///< extents of a full chunk
  int zstd_level = 0;

  std::size_t raw_bytes() const { return most.elems() * dtype_bytes(dtype); }
};

inline std::size_t max_chunk_bytes(const ChunkSpec& spec) { return 1 + spec.raw_bytes(); }

std::size_t encode_scratch_bytes(const ChunkSpec& spec);
/// Writes at most max_chunk_bytes to `out` and returns the count. `in` is no larger than spec.most along any axis.
Result<std::size_t> encode_chunk(const ChunkSpec& spec, const ConstBox3& in, std::span<std::uint8_t> out,
                                 std::span<std::uint8_t> scratch);

std::size_t decode_scratch_bytes(const ChunkSpec& spec);
/// Fills `out` or fails with `corrupt`; uses every byte of `in`.
Status decode_chunk(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                    std::span<std::uint8_t> scratch);

/// Estimated bits, in units of 1/256, of an element of this chunk after the best differencing; for comparing layouts.
/// Needs encode_scratch_bytes.
std::uint64_t estimate_chunk(const ChunkSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch);

}  // namespace quern::codec::lossless

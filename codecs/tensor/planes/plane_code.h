// The stored form of the planes of a chunk: a kind and a payload for each, the highest plane first.
#pragma once

#include <span>

#include <quern/status.h>

#include "codecs/tensor/planes/plane_model.h"
#include "libcompress/core/buffer.h"

namespace quern::codec::tensor {

/// The numbers are stored.
enum class PlaneKind : std::uint8_t {
  raw = 0,
  run = 1,     ///< one symbol
  packed = 2,  ///< bits that vary, at fixed places
  rans = 3,
  zstd = 4,
  rans_few = 5,  ///< rans of two states, for planes of few symbols
};

/// Words of one chunk, to be coded by planes.
struct PlaneWords {
  std::uint64_t count = 0;
  unsigned width = 0;   ///< bytes: 1, 2, 4 or 8
  bool rotate = false;  ///< the highest bit goes to the low end
  Reference8 reference;
};

/// Bytes of scratch that encoding and decoding take.
std::size_t encode_scratch_bytes(const PlaneWords& words);
std::size_t decode_scratch_bytes(const PlaneWords& words);

/// Codes `words.count` words at `from` into the start of `out`; returns the bytes, 0 when they would be more than
/// `out.size()`. `scratch` is 64-byte aligned, of encode_scratch_bytes().
Result<std::size_t> encode_planes(const PlaneWords& words, const std::uint8_t* from, int zstd_level,
                                  std::span<std::uint8_t> out, std::span<std::uint8_t> scratch);

/// Decodes all of `in` into `words.count` words at `to`. Hostile bytes fail with `corrupt`. `scratch` is 64-byte
/// aligned, of decode_scratch_bytes().
Status decode_planes(const PlaneWords& words, std::span<const std::uint8_t> in, std::uint8_t* to,
                     std::span<std::uint8_t> scratch);

}  // namespace quern::codec::tensor

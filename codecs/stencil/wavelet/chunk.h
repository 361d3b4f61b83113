// A chunk under the wavelet transform to bytes and back. The stored form is specified in docs/format-stencil.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/status.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/range.h"

namespace quern::codec::stencil {

std::size_t wavelet_encode_scratch_bytes(const EncodeSpec& spec);
/// Writes mode and content of a chunk of that range; 0 when that cannot be done or would be no smaller than the
/// elements themselves. `out` has max_chunk_bytes. May throw std::bad_alloc.
Result<std::size_t> encode_wavelet(const EncodeSpec& spec, const ConstBox3& in, const ChunkRange& range,
                                   std::span<std::uint8_t> out, std::span<std::uint8_t> scratch);
/// The step of coefficients that a part in the middle of a large chunk chooses, in errors allowed; 0: it is chosen by
/// coding all of the chunk. The scratch is that of encode_wavelet.
Result<double> wavelet_step(const EncodeSpec& spec, const ConstBox3& in, const ChunkRange& range,
                            std::span<std::uint8_t> scratch);
/// A cost of nothing when it cannot be done.
Result<ChunkCost> estimate_wavelet(const EncodeSpec& spec, const ConstBox3& in, const ChunkRange& range,
                                   std::span<std::uint8_t> scratch);

std::size_t wavelet_decode_scratch_bytes(const ChunkSpec& spec);
/// Decodes what follows the mode.
Status decode_wavelet(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                      std::span<std::uint8_t> scratch);
/// Decodes what follows the mode to a level of the array: see decode_coarse in coarse_chunk.h. The bands that hold the
/// level, and those coded before them, are decoded; corrections and exceptions are not.
Status decode_wavelet_coarse(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& chunk,
                             const LevelForm& form, unsigned level, const MutableBox3& out,
                             std::span<std::uint8_t> scratch);

}  // namespace quern::codec::stencil

// Chunks that are predicted from the same chunk of a reference: beside it in levels, or as differences from it. The
// stored form is specified in docs/format-stencil.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/references.h>
#include <quern/status.h>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {

/// What a reader says that lacks the reference.
Status missing_reference(const ReferenceId& reference);

std::size_t encode_beside_scratch_bytes(const EncodeSpec& spec);
/// The smallest of: the chunk alone, beside the reference, and as differences. `reference` has the same extents, and
/// special values as they are. As encode_chunk otherwise.
Result<std::size_t> encode_chunk_beside(const EncodeSpec& spec, const ConstBox3& in, const ConstBox3& reference,
                                        std::span<std::uint8_t> out, std::span<std::uint8_t> scratch);

std::size_t decode_beside_scratch_bytes(const ChunkSpec& spec);
/// Decodes a chunk of any mode. `reference_missing` where the reference is not the one that the encoder had.
Status decode_chunk_beside(const ChunkSpec& spec, std::span<const std::uint8_t> in, const ConstBox3& reference,
                           const MutableBox3& out, std::span<std::uint8_t> scratch);

}  // namespace quern::codec::stencil

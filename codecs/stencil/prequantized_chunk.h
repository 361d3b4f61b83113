// Chunks of prequantized elements (PlanRequest::prequantized): coded as the chunk of their codes, which are integers,
// and the elements that have none, bit for bit. Everything comes back exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {

/// A chunk of codes, and what stands before it in the stored form: mode, step, elements without a code.
struct PrequantizedChunk {
  Vector<std::uint8_t> head;
  Vector<std::int32_t> codes;
  ConstBox3 box;    ///< of `codes`
  EncodeSpec spec;  ///< of the chunk of codes; exact
};

/// The codes of a chunk, as the quantizer of its type and bound gives them. Without codes where so many elements have
/// none that nothing is to be gained. May throw std::bad_alloc.
PrequantizedChunk prequantized_chunk(const EncodeSpec& spec, const ConstBox3& in);

/// Decodes what follows the mode. Needs decode_scratch_bytes.
Status decode_prequantized(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                           std::span<std::uint8_t> scratch);

}  // namespace quern::codec::stencil

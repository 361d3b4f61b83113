// The encoder of an array in parts. Stored form: docs/format-stencil.md, Parts.
#pragma once

#include <memory>
#include <optional>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/references.h>
#include <quern/status.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/parts/partition.h"
#include "codecs/stencil/plan/encoded_chunks.h"

namespace quern::codec::stencil {

/// How one part is encoded.
struct PartEncoding {
  Part part;
  EncodeSpec spec;
  std::unique_ptr<EncodedChunks> encoded = nullptr;  ///< chunks that the choice made; null: none
};

/// An encoder of such parts. With a reference it is a ReferenceChunkEncoder, too. `internal` where readers would refuse
/// the parameters. May throw std::bad_alloc.
Result<std::unique_ptr<ChunkEncoder>> make_parted_encoder(const Shape& array, std::uint64_t chunk_slices,
                                                          Vector<PartEncoding> parts,
                                                          const std::optional<ReferenceId>& reference);

}  // namespace quern::codec::stencil

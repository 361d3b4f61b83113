// The decoder of an array in parts. Stored form: docs/format-stencil.md, Parts.
#pragma once

#include <memory>

#include <quern/codec.h>

#include "codecs/stencil/parts/partition.h"
#include "kernels/stencil/cpu/stencil.h"

namespace quern::codec::stencil {

/// With a reference it is a ReferenceChunkDecoder, too. May throw std::bad_alloc.
std::unique_ptr<ChunkDecoder> make_parted_decoder(DType dtype, const Shape& array, const Partition& partition,
                                                  const kernels::StencilKernels& kernels);

}  // namespace quern::codec::stencil

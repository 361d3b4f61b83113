// The stages of encoding a chunk in raster order that look at parts and sums of it alone. Between them lie those that
// look at all of it: the closed loop with its exceptions and counts, and writing the lanes, by encode_chunk or by a
// device (raster_encode.h).
#pragma once

#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/raster/model.h"
#include "coding/distribution_fit.h"

namespace quern::codec::stencil {

/// Chooses the format and fits weights and contexts of a chunk that is coded in raster order and has no lattice. False
/// when it takes another form, or only encode_chunk can say. Needs encode_scratch_bytes.
bool fit_raster_model(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch, RasterModel& model);

struct RasterExceptions {
  std::uint64_t count = 0;
  Vector<std::uint8_t> bytes;  ///< as they are stored, without the count
};

/// Sets distributions and lanes from the counts of symbols; false when the chunk is to be stored raw.
bool choose_raster_coding(coding::BinCounts& counts, const RasterExceptions& exceptions, std::uint64_t rows,
                          std::uint64_t raw_bytes, RasterModel& model);

/// What a chunk begins with, up to the sizes of its lanes.
void write_raster_head(const RasterModel& model, kernels::StencilShape shape, const RasterExceptions& exceptions,
                       Vector<std::uint8_t>& out);

}  // namespace quern::codec::stencil

// What of a model in raster order lanes are told: extents, taps and weights by classes of rows, for decoding and for
// encoding.
#pragma once

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/stencil/raster/model.h"
#include "kernels/stencil/raster_job.h"

namespace quern::codec::stencil {

struct RasterTables {
  Vector<kernels::RasterTap<double>> taps;
  Vector<kernels::RasterTap<std::uint32_t>> context_taps;
};

/// Strides of the chunk's elements and classes, slowest axis first; those of its columns are 1.
struct RasterStrides {
  std::array<std::uint64_t, 2> elements{};
  std::array<std::uint64_t, 2> special{};
};

/// Sets everything of `head` that follows from the model, and the lists of taps that it refers to.
void describe_raster(DType dtype, const RasterModel& model, const std::array<std::uint64_t, 3>& extents,
                     const RasterStrides& strides, kernels::RasterJob& head, RasterTables& tables);

}  // namespace quern::codec::stencil

// Fits weights and context weights to a chunk: least squares on sampled elements, candidates compared by running the
// loop over a box of the chunk.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/effort.h"
#include "codecs/stencil/fitted_parts.h"
#include "codecs/stencil/raster/model.h"
#include "codecs/stencil/raster/planes.h"
#include "kernels/stencil/cpu/stencil.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil {

/// The size of the box of a chunk that models are fitted on: all of a small chunk; a larger one with axes halved,
/// longest first, until its working planes are small.
struct TrialSize {
  static constexpr std::size_t kWholeElems = std::size_t{1} << 20;
  static constexpr std::size_t kPartElems = std::size_t{3} << 16;
  std::array<std::uint64_t, 3> extents{};

  explicit TrialSize(const std::array<std::uint64_t, 3>& chunk) : extents(chunk) {
    if (work_elems() > kWholeElems) {
      while (work_elems() > kPartElems) {
        auto& longest = *std::max_element(extents.begin(), extents.end());
        longest = (longest + 1) / 2;
      }
    }
  }

 private:
  std::size_t work_elems() const {
    return kernels::PlaneGeometry::make(kernels::stencil_extents(extents), true).elems();
  }
};

/// How much a fit tries.
///   quick_estimate  fits the row class of most elements from few samples, and costs that class alone
///   estimate        as low, with the usual noise of reconstructed values in place of the measured one
///   low             one fit
///   medium          one refit less than high, most of it on fewer samples
///   high            all refits
enum class RasterEffort : std::uint8_t { quick_estimate, estimate, low, medium, high };

/// What a chunk is fitted with.
constexpr RasterEffort raster_effort(Effort effort) {
  return effort == Effort::high     ? RasterEffort::high
         : effort == Effort::medium ? RasterEffort::medium
                                    : RasterEffort::low;
}

/// Targets in units, contiguous, kStencilBlock readable ones after the last; elements whose `special` is not 0 are not
/// coded.
struct TrialBox {
  kernels::StencilExtents extents;
  const std::int64_t* targets = nullptr;
  const std::uint8_t* special = nullptr;  ///< null: none
};

/// Memory of a fit over a box of at most those extents.
struct FitMemory {
  FitMemory(Arena& arena, const kernels::StencilExtents& extents)
      : planes(arena, extents, true), codes(arena.take<std::int32_t>(extents.elems())) {}
  WorkPlanes planes;
  std::int32_t* codes;
};

/// More than what fits over any box take, targets included, if chunks are smaller than these and may be fitted whole.
inline std::size_t most_fit_bytes(const std::array<std::uint64_t, 3>& extents) {
  constexpr std::size_t kElemBytes = 2 * sizeof(double) + 2 * sizeof(std::uint32_t) + sizeof(std::int32_t) +  // planes
                                     sizeof(std::int64_t) + sizeof(std::uint8_t);                             // targets
  const std::size_t work = kernels::PlaneGeometry::make(kernels::stencil_extents(extents), true).elems();
  return std::min(work, TrialSize::kWholeElems) * kElemBytes;
}

/// Estimated bits, in units of 2^-12, that the box costs.
struct FitCost {
  std::uint64_t plain = 0;  ///< by order-0 entropy
  std::uint64_t bits = 0;   ///< with contexts, after a quick estimate
  bool given_up = false;    ///< more than was asked for by order-0 entropy: the model is not complete
};

/// Sets weights, context weights and constant of `model`, whose fraction_bits and weight_bits are given. Scalar
/// binary64 in a fixed order: the same everywhere. An estimate is given up where first weights leave more than
/// `most_plain` bits, in units of 2^-12.
FitCost fit_model(const TrialBox& box, const kernels::StencilKernels& kernels, FitMemory& memory, RasterEffort effort,
                  FittedParts parts, RasterModel& model, std::uint64_t most_plain = UINT64_MAX);

}  // namespace quern::codec::stencil

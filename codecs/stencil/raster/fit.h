// Fits weights and context weights to a chunk: least squares on sampled elements, candidates compared by running the
// loop over a box of the chunk.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/arena.h"
#include "codecs/stencil/fitted_parts.h"
#include "codecs/stencil/model/model.h"
#include "codecs/stencil/effort.h"
#include "codecs/stencil/raster/planes.h"
#include "kernels/stencil/cpu/stencil.h"

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

/// How much a fit tries. A glance fits the row class that most elements are of, from few samples, and costs that alone.
/// An estimate is a quick fit that takes the noise of reconstructed values for what it mostly is. A brisk fit does what
/// a full one does once less, and most of it on fewer samples.
enum class Effort : std::uint8_t { glance, estimate, quick, brisk, full };

/// What a chunk is fitted with.
constexpr Effort effort_of(Pace pace) {
  return pace == Pace::thorough ? Effort::full : pace == Pace::brisk ? Effort::brisk : Effort::quick;
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
  FitMemory(Carver& carver, const kernels::StencilExtents& extents)
      : planes(carver, extents, true), codes(carver.take<std::int32_t>(extents.elems())) {}
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
  std::uint64_t bits = 0;   ///< with contexts, after a glance
  bool given_up = false;    ///< more than was asked for by order-0 entropy: the model is not complete
};

/// Sets weights, context weights and constant of `model`, whose fraction_bits and weight_bits are given. Scalar
/// binary64 in a fixed order: the same everywhere. An estimate is given up where first weights leave more than
/// `most_plain` bits, in units of 2^-12.
FitCost fit_model(const TrialBox& box, const kernels::StencilKernels& kernels, FitMemory& memory, Effort effort,
                  FittedParts parts, ChunkModel& model, std::uint64_t most_plain = UINT64_MAX);

}  // namespace quern::codec::stencil

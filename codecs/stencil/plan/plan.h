// Which axes to merge and in which order to walk them, decided by fitting and coding a box of the sample under every
// layout.
#pragma once

#include <memory>
#include <optional>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/plan/encoded_chunks.h"
#include "codecs/stencil/rules.h"
#include "kernels/stencil/cpu/stencil.h"

namespace quern::codec::stencil {

/// Every layout of a shape; those whose merged extents come out equal appear once.
Vector<Layout> all_layouts(const Shape& shape);

/// How layouts are compared.
enum class Comparison : std::uint8_t {
  boxes,   ///< on one box of typical activity
  blocks,  ///< on blocks all over the array
  whole,   ///< on all chunks
};

/// What the settings leave open.
struct LayoutChoice {
  std::optional<Layout> axes;            ///< how axes are merged; its order of walking does not count
  bool raster = true;                    ///< raster order may be chosen
  bool levels = true;                    ///< all axes coarse to fine
  bool planes = true;                    ///< the first sequential, the others coarse to fine
  bool wavelet = true;                   ///< the wavelet transform
  FittedParts parts;                     ///< what trials may fit
  std::optional<Comparison> comparison;  ///< none: as effort and size ask for
  bool brief = false;                    ///< one of several parts: the transform has to look well by its entropy
};

/// What decides how chunks are encoded, beside the request.
struct Way {
  Layout layout;
  std::uint8_t tightening = 0;  ///< of coarse levels: row of kLevelSteps
};

struct ChosenLayout {
  Way way;
  std::unique_ptr<EncodedChunks> encoded = nullptr;  ///< of the whole array, where the choice made them and kept them
  std::uint64_t bytes = 0;                           ///< of all chunks, where the choice made them
};

/// Whether prequantized elements are coded as their codes: integers under a bound below 1 are their own.
inline bool codes_elements(const PlanRequest& request) {
  return request.prequantized && (is_float(request.dtype) || request.bound.value >= 1);
}

/// How chunks are encoded.
EncodeSpec encode_spec(const PlanRequest& request, const Way& way, FittedParts parts,
                       const kernels::StencilKernels& kernels);

/// The layout of the fewest estimated bits an element; ties to the lower index. May throw std::bad_alloc.
Result<ChosenLayout> choose_layout(const PlanRequest& request, const LayoutChoice& choice,
                                   const kernels::StencilKernels& kernels);

}  // namespace quern::codec::stencil

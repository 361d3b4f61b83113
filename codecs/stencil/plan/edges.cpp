// Two estimates of one block, then all chunks where they are few.
#include "codecs/stencil/plan/edges.h"

#include <algorithm>

#include "codecs/stencil/effort.h"
#include "codecs/stencil/plan/measured_choice.h"
#include "codecs/stencil/plan/sample_block.h"
#include "codecs/stencil/plan/trial.h"
#include "libcompress/core/buffer.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint64_t kLeastElems = UINT64_C(1) << 15;  // fewer do not pay for more weights
// A block has a part of the array's elements, so that what it takes is little beside the encoding.
constexpr std::uint64_t kBlockShare = 16;
constexpr std::uint64_t kLeastBlockElems = UINT64_C(1) << 14;
constexpr std::uint64_t kMostBlockElems = UINT64_C(1) << 17;
// Hundredths of the bits of a block with linear groups alone, that those with others may take. Decoding takes longer,
// and an array gains more or less than a block does. Where all of the array is encoded, that decides: a block only rules
// them out.
constexpr std::uint64_t kMostPercent = 98;
constexpr std::uint64_t kMostPercentMeasured = 102;

}  // namespace

Status try_edges(const PlanRequest& request, FittedParts parts, const kernels::StencilKernels& kernels,
                 ChosenLayout& chosen) {
  const Layout& layout = chosen.way.layout;
  if (!layout.levels || layout.edges || !parts.weights || effort_number(request) < 4 || wants_psnr(request) ||
      codes_elements(request) || request.shape.elems() < kLeastElems)
    return {};
  BufferPool scratch;
  const std::uint64_t elems = std::clamp(request.shape.elems() / kBlockShare, kLeastBlockElems, kMostBlockElems);
  const Shape shape = trial_shape(request.shape, request.sample->elems(), elems);
  QUERN_ASSIGN_OR_RETURN(const TrialArray array, take_trial_array(request, shape));
  const Stage stage{request, kernels, array, parts, scratch};
  Vector<Trial> trials{{layout}, {layout}};
  trials[1].layout.edges = true;
  QUERN_RETURN_IF_ERROR(stage.run(trials));
  if (!cheaper(trials[1], trials[0], chosen.bytes > 0 ? kMostPercentMeasured : kMostPercent)) return {};
  Way way = chosen.way;
  way.layout.edges = true;
  if (chosen.bytes > 0) return encode_also(stage, way, chosen);
  chosen.way = way;
  return {};
}

}  // namespace quern::codec::stencil

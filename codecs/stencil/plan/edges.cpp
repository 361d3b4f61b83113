// Two estimates of one block, then all chunks where they are few.
#include "codecs/stencil/plan/edges.h"

#include "codecs/stencil/effort.h"
#include "codecs/stencil/plan/measured_choice.h"
#include "codecs/stencil/plan/sample_block.h"
#include "codecs/stencil/plan/trial.h"
#include "libcompress/core/buffer.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint64_t kLeastElems = UINT64_C(1) << 15;  // fewer do not pay for more weights
constexpr std::uint64_t kBlockElems = UINT64_C(1) << 17;
// Hundredths of the bits of a block with linear groups alone, that those with others may take. Decoding takes longer,
// and an array gains more or less than a block does; where all of the array is encoded, that decides.
constexpr std::uint64_t kMostPercent = 98;
constexpr std::uint64_t kMostPercentMeasured = 99;

}  // namespace

Status try_edges(const PlanRequest& request, FittedParts parts, const kernels::StencilKernels& kernels,
                 ChosenLayout& chosen) {
  const Layout& layout = chosen.way.layout;
  if (!layout.levels || layout.edges || !parts.weights || effort_number(request) < 4 || wants_psnr(request) ||
      codes_elements(request) || request.shape.elems() < kLeastElems)
    return {};
  BufferPool scratch;
  const Shape shape = trial_shape(request.shape, request.sample->elems(), kBlockElems);
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

// One layout tried on a box of the array: what it would take there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/fitted_parts.h"
#include "codecs/stencil/plan/plan.h"
#include "codecs/stencil/plan/sample_block.h"
#include "codecs/stencil/rules.h"
#include "kernels/stencil/cpu/stencil.h"
#include "libcompress/core/buffer.h"

namespace quern::codec::stencil {

constexpr std::uint64_t kWholeElems = UINT64_C(5) << 15;  // an array of no more is tried as a whole

struct Trial {
  Layout layout;
  std::uint64_t elems = 0;
  std::uint64_t bits = 0;                   ///< in units of 2^-12
  std::uint64_t plain = 0;                  ///< the same by order-0 entropy
  std::optional<std::uint8_t> transform{};  ///< that a quick estimate chose
  bool dense = false;                       ///< of levels where codes are large
};

inline bool wants_psnr(const PlanRequest& request) { return request.goal == "psnr"; }

/// Whether two layouts walk alike, however they merge axes.
inline bool same_order(const Layout& a, const Layout& b) {
  return a.levels == b.levels && a.sequential == b.sequential && a.wavelet == b.wavelet;
}

/// True when trial `a` takes fewer bits an element than `percent` hundredths of what trial `b` takes.
inline bool cheaper(const Trial& a, const Trial& b, std::uint64_t percent = 100) {
  return 100 * a.bits * b.elems < percent * b.bits * a.elems;
}

/// The index of the trial of fewest bits; ties to the lower index.
std::size_t best_of(const Vector<Trial>& trials);

/// Tight coarse levels pay where few bits go to the finest: there it is the grid below that errors come from. For
/// the mean error they pay earlier. Limits in bits an element, found on real fields.
Way way_of(const PlanRequest& request, const Trial& trial);

/// What all trials of one stage share.
struct Stage {
  const PlanRequest& request;
  const kernels::StencilKernels& kernels;
  const TrialArray& array;
  FittedParts parts;
  BufferPool& scratch;
  bool quick_estimate = false;

  /// Runs trials from `first` on, side by side. Of raster order and the transform, what takes more bits an element by
  /// order-0 entropy, in units of 2^-12, than `most_plain` is given up.
  Status run(Vector<Trial>& trials, std::size_t first = 0, std::uint64_t most_plain = UINT64_MAX) const;
};

}  // namespace quern::codec::stencil

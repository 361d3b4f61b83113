// Entry points of the kernels that only encoders of the stencil codec need: residuals into many lanes side by side. All
// instruction sets write the same words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/entropy/cpu/put_lanes.h"

namespace quern::kernels {

struct StencilEncodeKernels {
  /// Puts codes[x], whose symbol is symbols[x], into lane (first + x) & lanes.mask, for x < count, the last one first.
  void (*put_residuals)(PutLanes& lanes, const ResidualEntries& entries, const std::uint16_t* symbols,
                        const std::int32_t* codes, std::size_t count, std::size_t first);
  /// Puts rows of all lanes.
  void (*put_rows)(PutLanes& lanes, const ResidualEntries& entries, const std::uint16_t* symbols,
                   const std::int32_t* codes, const PutRows& rows);
};

}  // namespace quern::kernels

// The codec `stencil`: ratio. Fitted stencils in raster order, reconstruction in fixed point, contexts from
// neighbouring residuals, rANS. Stored form: docs/format-stencil.md.
#pragma once

#include <quern/codec.h>

namespace quern::codec::stencil {

inline constexpr std::uint16_t kCodecId = 3;
inline constexpr std::uint16_t kCodecVersion = 1;

/// The codec object; immutable, lives as long as the job.
///
/// Settings: `layout` = auto | ORDER | AXES | ORDER:AXES, ORDER = raster | levels (coarse to fine) | planes (the same,
/// but the first axis plane after plane), AXES = 1d | 2d:K | 3d:J,K (axes [0,J) [J,K) [K,rank) merged); `choice` =
/// auto | boxes | blocks | whole (how layouts are compared, whatever the effort says); `isa` = auto | baseline | avx2 |
/// avx512 (same bytes whichever runs).
const ArrayCodec& stencil_codec();

}  // namespace quern::codec::stencil

// The codec `stencil`: ratio. Fitted stencils in raster order, reconstruction in fixed point, contexts from
// neighbouring residuals, rANS. Stored form: docs/format-stencil.md.
#pragma once

#include <memory>

#include <quern/codec.h>
#include <quern/models.h>

namespace quern::codec::stencil {

inline constexpr std::uint16_t kCodecId = 3;
inline constexpr std::uint16_t kCodecVersion = 1;

/// The codec object; immutable, lives as long as the job.
///
/// Settings: `layout` = auto | ORDER | AXES | ORDER:AXES, ORDER = raster | levels (coarse to fine) | planes (the same,
/// but the first axis plane after plane), AXES = 1d | 2d:K | 3d:J,K (axes [0,J) [J,K) [K,rank) merged); `choice` =
/// auto | boxes | blocks | whole (how layouts are compared, whatever the effort says); `isa` = auto | baseline | avx2 |
/// avx512 (same bytes whichever runs); `model` = off | ID of a model of super-resolution, `embed` = auto | yes | no
/// (whether the stream holds the model).
const ArrayCodec& stencil_codec();
/// The same with models, which it does not own and which outlive it.
std::unique_ptr<ArrayCodec> stencil_codec_with(const ModelSource& models);

}  // namespace quern::codec::stencil

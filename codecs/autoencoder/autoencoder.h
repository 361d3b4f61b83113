// The codec `autoencoder`: blocks that small networks describe (AE-SZ), with classic predictors beside them. Stored
// form: docs/format-autoencoder.md.
#pragma once

#include <memory>

#include <quern/codec.h>
#include <quern/models.h>

namespace quern::codec::autoencoder {

inline constexpr std::uint16_t kCodecId = 5;
inline constexpr std::uint16_t kCodecVersion = 1;

/// The codec object; immutable, lives as long as the job. It has no models but those that streams embed.
///
/// Settings: `model` = off | 32 hexadecimal digits (the id of a model); `embed` = auto | yes | no (whether streams hold
/// the model; auto: where it pays); `isa` = auto | baseline | avx2 (same bytes whichever runs).
const ArrayCodec& autoencoder_codec();

/// The same codec with models; does not own the source, which outlives it.
std::unique_ptr<ArrayCodec> autoencoder_codec_with(const ModelSource& models);

}  // namespace quern::codec::autoencoder

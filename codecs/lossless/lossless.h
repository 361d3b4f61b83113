// The `lossless` codec: every bit comes back. Ordered integer keys, exact differences, tokens in contexts, rANS; raw
// where nothing pays. Also what other codecs fall back to.
#pragma once

#include <quern/codec.h>

namespace quern::codec::lossless {

/// Takes every element type under `lossless`, and under `abs` with value 0. One setting: `zstd=1..19` also tries zstd
/// at that level on every chunk (slow; those bytes depend on the version of zstd). Thread-safe.
const ArrayCodec& lossless_codec();

}  // namespace quern::codec::lossless

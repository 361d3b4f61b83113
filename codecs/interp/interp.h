// interp, the ratio codec made for devices: interpolation by levels inside tiles, in fixed point, and rANS with
// distributions chosen by the codes around each point. Stored form: docs/format-interp.md.
#pragma once

#include <quern/codec.h>

namespace quern::codec::interp {

inline constexpr std::uint16_t kCodecId = 4;
inline constexpr std::uint16_t kCodecVersion = 1;

/// The codec object; immutable, lives as long as the program.
///
/// Settings: `layout` = auto | 1d | 2d:K | 3d:J,K (axes [0,J) [J,K) [K,rank) merged), each with `:A,B,C` behind it for
/// tiles of 2^A x 2^B x 2^C elements along these three; `isa` = auto | baseline | avx2 | avx512 (the same bytes whichever
/// runs).
const ArrayCodec& interp_codec();

}  // namespace quern::codec::interp

// The codec `lorenzo`: throughput. Verified quantization, Lorenzo prediction chosen for each tile, bit planes without
// their zero bytes; no entropy coder, one pass. Stored form: docs/format.md, chapter "Codec lorenzo".
#pragma once

#include <quern/codec.h>

namespace quern::codec::lorenzo {

inline constexpr std::uint16_t kCodecId = 1;
inline constexpr std::uint16_t kCodecVersion = 1;

/// The codec object; immutable, lives as long as the program.
///
/// Settings: `layout` = auto | 1d | 2d:K | 3d:J,K (axes [0,J) [J,K) [K,rank) merged), `isa` = auto | baseline | avx2 |
/// avx512 (same bytes whichever runs), `verify` = none | fault (hold stored chunks against their elements; the host
/// encodes then; ADR 031).
const ArrayCodec& lorenzo_codec();

}  // namespace quern::codec::lorenzo

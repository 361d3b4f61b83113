// The codec `packing` for arrays: the same runs of values as chunks.
#pragma once

#include <quern/codec.h>

namespace quern::codec::packing {

/// As kRecordCodecId; the two lists of ids are apart.
inline constexpr std::uint16_t kArrayCodecId = 0xF001;

const ArrayCodec& array_codec();

}  // namespace quern::codec::packing

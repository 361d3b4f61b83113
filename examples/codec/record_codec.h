// The codec `packing` for records: every section by itself, part by part.
#pragma once

#include <quern/records.h>

namespace quern::codec::packing {

/// Ids from 0xF000 on are for private use: no codec of the library ever gets one (docs/format.md, chapter 10).
inline constexpr std::uint16_t kRecordCodecId = 0xF001;

const RecordCodec& record_codec();

}  // namespace quern::codec::packing

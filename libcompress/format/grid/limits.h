// What no stream of an array may exceed, beside frame/limits.h. A reader checks these before it allocates anything;
// docs/format.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libcompress/format/frame/limits.h"

namespace quern {

inline constexpr std::size_t kMaxFillValues = 8;
inline constexpr std::uint64_t kMaxChunkElems = UINT64_C(1) << 26;
inline constexpr std::uint64_t kMaxSegmentChunks = 64;
/// Beginnings of a chunk that a level table tells of.
inline constexpr std::uint64_t kMaxLevelCuts = 16;
/// Per chunk their count, and for each of them a size and a check.
inline constexpr std::uint64_t kMaxLevelTableBytes = kMaxSegmentChunks * (1 + kMaxLevelCuts * (5 + 4));

}  // namespace quern

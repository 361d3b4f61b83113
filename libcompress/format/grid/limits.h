// What no stream may exceed. A reader checks these before it allocates anything; docs/format.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern {

inline constexpr std::uint64_t kMaxParamsBytes = UINT64_C(1) << 20;
inline constexpr std::uint64_t kMaxMetadataBytes = UINT64_C(1) << 20;
inline constexpr std::size_t kMaxFillValues = 8;
inline constexpr std::uint64_t kMaxChunkElems = UINT64_C(1) << 26;
inline constexpr std::uint64_t kMaxElems = UINT64_C(1) << 59;
inline constexpr std::uint64_t kMaxSegmentChunks = 64;
/// Beginnings of a chunk that a level table tells of.
inline constexpr std::uint64_t kMaxLevelCuts = 16;
/// Per chunk their count, and for each of them a size and a check.
inline constexpr std::uint64_t kMaxLevelTableBytes = kMaxSegmentChunks * (1 + kMaxLevelCuts * (5 + 4));
/// Fixed fields, eight 10-byte extents, fill values and the two sections with room to spare.
inline constexpr std::uint64_t kMaxHeaderBytes = kMaxParamsBytes + kMaxMetadataBytes + 1024;

}  // namespace quern

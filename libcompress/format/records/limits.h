// What no stream of records may exceed, beside frame/limits.h. A reader checks these before it allocates anything;
// docs/format-records.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libcompress/format/frame/limits.h"

namespace quern {

inline constexpr std::uint64_t kMaxSections = 1024;
inline constexpr std::uint64_t kMaxSectionNameBytes = 255;
inline constexpr std::uint64_t kMaxFrames = UINT64_C(1) << 16;
inline constexpr std::uint64_t kMaxSegmentItems = UINT64_C(1) << 32;
/// Bytes of the values that a section has in one segment.
inline constexpr std::uint64_t kMaxPartBytes = UINT64_C(1) << 31;
/// Bytes of a byte section's string in one segment.
inline constexpr std::uint64_t kMaxStringBytes = UINT64_C(1) << 30;

}  // namespace quern

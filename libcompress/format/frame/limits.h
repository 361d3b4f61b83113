// What no stream may exceed, whatever it holds. A reader checks these before it allocates anything; docs/format.md
// lists them.
#pragma once

#include <cstdint>

namespace quern {

inline constexpr std::uint64_t kMaxParamsBytes = UINT64_C(1) << 20;
inline constexpr std::uint64_t kMaxMetadataBytes = UINT64_C(1) << 20;
inline constexpr std::uint64_t kMaxElems = UINT64_C(1) << 59;
/// Fixed fields, eight 10-byte extents, fill values and the two sections with room to spare.
inline constexpr std::uint64_t kMaxHeaderBytes = kMaxParamsBytes + kMaxMetadataBytes + 1024;

}  // namespace quern

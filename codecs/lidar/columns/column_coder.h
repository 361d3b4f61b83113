// Attributes of points: one column is coded as the bytes of its elements, each byte predicted from the points before it
// and from the more significant bytes of its own element. Columns of few distinct values are coded as numbers of a
// table instead.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::codec::lidar {

/// `values`: elements of `element_bytes` (1, 2, 4 or 8), little-endian. Never more than the raw bytes and one. May
/// throw std::bad_alloc.
Vector<std::uint8_t> encode_column(std::span<const std::uint8_t> values, unsigned element_bytes);

/// Fills `values`, whose size the caller knows. Any bytes are safe; fails with `corrupt`. May throw std::bad_alloc.
Status decode_column(std::span<const std::uint8_t> bytes, unsigned element_bytes, std::span<std::uint8_t> values);

}  // namespace quern::codec::lidar

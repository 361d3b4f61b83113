// Packed bytes of bags: zstd and lz4 frames, never into more memory than the caller says.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::lidar {

inline constexpr std::string_view kZstdMark = "\x28\xB5\x2F\xFD";

/// Frames one after another of a size that need not be stored. Fails with `memory_limit` above `most_bytes`, with
/// `corrupt` or `truncated` on damaged ones.
Result<Vector<std::uint8_t>> expand_zstd(std::span<const std::uint8_t> in, std::uint64_t most_bytes);

/// What must fill `out` exactly; else `corrupt`. Fails with `unsupported` in a build without lz4.
Status expand_lz4(std::span<const std::uint8_t> in, std::span<std::uint8_t> out);

/// CRC-32 as zlib computes it.
std::uint32_t crc32_of(std::span<const std::uint8_t> bytes);

}  // namespace quern::lidar

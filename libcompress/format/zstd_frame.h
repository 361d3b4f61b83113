// One zstd frame to bytes and back, in memory of known size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/status.h>

namespace quern {

/// Packs `data` into one frame at the start of `out` and returns its bytes, 0 when it does not fit. Fails with
/// out_of_memory alone.
Result<std::size_t> zstd_pack(std::span<const std::uint8_t> data, int level, std::span<std::uint8_t> out);

/// Unpacks `in`, one whole frame and nothing behind it, which must fill `out`. Hostile bytes fail with `corrupt`.
Status zstd_unpack(std::span<const std::uint8_t> in, std::span<std::uint8_t> out);

}  // namespace quern

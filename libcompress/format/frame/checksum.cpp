// XXH3-64 through the xxHash header.
#include "libcompress/format/frame/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>

namespace quern {

std::uint64_t checksum64(std::span<const std::uint8_t> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Checksum128 checksum128(std::span<const std::uint8_t> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

std::uint64_t bound_checksum64(std::uint64_t first, std::uint64_t second, std::span<const std::uint8_t> bytes) {
  std::array<std::uint8_t, 16> prefix{};
  for (std::size_t i = 0; i < 8; ++i) {
    prefix[i] = static_cast<std::uint8_t>(first >> (8 * i));
    prefix[8 + i] = static_cast<std::uint8_t>(second >> (8 * i));
  }
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, prefix.data(), prefix.size());
  XXH3_64bits_update(&state, bytes.data(), bytes.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace quern

// XXH3-64 with seed 0: the checksum of everything stored.
#pragma once

#include <cstdint>
#include <span>

namespace quern {

/// XXH3-64, seed 0.
std::uint64_t checksum64(std::span<const std::uint8_t> bytes);

/// XXH3-128, seed 0: of content that is compared by its hash alone.
struct Checksum128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend constexpr bool operator==(const Checksum128& a, const Checksum128& b) {
    return a.low == b.low && a.high == b.high;
  }
};
Checksum128 checksum128(std::span<const std::uint8_t> bytes);

/// XXH3-64 of `first` and `second` (each as eight little-endian bytes) followed by `bytes`: binds a piece of a stream
/// to the stream and to its place there.
std::uint64_t bound_checksum64(std::uint64_t first, std::uint64_t second, std::span<const std::uint8_t> bytes);

}  // namespace quern

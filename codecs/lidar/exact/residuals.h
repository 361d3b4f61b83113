// Mode `exact`: what the lattice leaves of binary32 coordinates, as differences of ordered bit patterns.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::codec::lidar {

/// `decoded` and `words` have the same length, a multiple of 3. Empty where they are equal. May throw std::bad_alloc.
Vector<std::uint8_t> encode_residuals(std::span<const std::uint32_t> decoded, std::span<const std::uint32_t> words);

/// Turns decoded words into the exact ones. Any bytes are safe; fails with `corrupt`.
Status apply_residuals(std::span<const std::uint8_t> bytes, std::span<std::uint32_t> words);

}  // namespace quern::codec::lidar

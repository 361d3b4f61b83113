// Mode `exact`: what a lattice leaves of coordinates, as differences of integers.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::codec::lidar {

/// `decoded` and `exact` have the same length, a multiple of 3, and lie within 2^62 of each other. Empty where they are
/// equal. May throw std::bad_alloc.
Vector<std::uint8_t> encode_residuals(std::span<const std::int64_t> decoded, std::span<const std::int64_t> exact);

/// Turns decoded values into the exact ones. Any bytes are safe; fails with `corrupt`.
Status apply_residuals(std::span<const std::uint8_t> bytes, std::span<std::int64_t> values);

}  // namespace quern::codec::lidar

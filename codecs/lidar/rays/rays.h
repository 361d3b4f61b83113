// Scans to bytes of tool R and back.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/lidar/geometry/fine_points.h"

namespace quern::codec::lidar {

/// Codes points in their order, each at a site of the centred lattice of `spacing` units that is within `reach` fine
/// units of it, except where rounding forbids; the caller checks. None where points lie beyond kMostRayUnits. May throw
/// std::bad_alloc.
std::optional<Vector<std::uint8_t>> encode_rays(std::span<const FinePoint> points, std::int64_t spacing,
                                                std::int64_t reach);

/// Fills `points` with coordinates in units. Any bytes are safe; fails with `corrupt`. May throw std::bad_alloc.
Status decode_rays(std::span<const std::uint8_t> bytes, std::int64_t spacing,
                   std::span<std::array<std::int64_t, 3>> points);

}  // namespace quern::codec::lidar

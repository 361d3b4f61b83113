// What an encoder finds out about the sensor of a scan before it codes rays.
#pragma once

#include <cstdint>
#include <span>

#include "codecs/lidar/geometry/fine_points.h"
#include "codecs/lidar/rays/ray_coder.h"

namespace quern::codec::lidar {

/// A sensor of that many chains whose azimuth goes on as it does between most points of a chain.
RaySensor guess_sensor(std::span<const FinePoint> points, std::uint32_t chains, std::int32_t height);

}  // namespace quern::codec::lidar

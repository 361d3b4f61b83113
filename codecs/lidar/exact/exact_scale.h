// Mode `exact`: finds decimal units in which all coordinates are whole numbers, as in scans that were rounded to
// millimetres before they became binary32.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "codecs/lidar/geometry/fixed_point.h"

namespace quern::codec::lidar {

/// Whether the three words of a point are what word_of() makes of whole units.
bool comes_back(std::span<const std::uint32_t> point, const Scale& scale);

/// The coarsest scale that gives all points back but one in 256; none where none does. Integers always have one.
std::optional<Scale> exact_scale(CoordinateType type, std::span<const std::uint32_t> words);

}  // namespace quern::codec::lidar

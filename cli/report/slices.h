// Which planes of an array are shown, and what they look like at screen size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/pair_reader.h"

namespace quern::report {

/// A plane of the last two axes; all other axes are fixed.
struct Plane {
  std::uint64_t first = 0;  ///< linear index of its first element
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::string where;  ///< "[12, :, :]"
};

/// The planes shown: for rank 2 the array; for rank 3 and more the middle and two others along the axis before the last
/// two, every axis before that in its middle. Nothing for fewer axes and for arrays without elements.
std::vector<Plane> choose_planes(const Shape& shape);

/// A plane at no more than kMaxPixels in either direction. Blocks are averaged over their valid elements; of the errors
/// in a block the largest in magnitude stays. NaN: no valid element. Infinity: the reconstruction is not finite.
struct PlanePixels {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<double> original;
  std::vector<double> reconstructed;
  std::vector<double> error;
};

inline constexpr std::uint64_t kMaxPixels = 512;

PlanePixels render_plane(const PairReader& reader, const Plane& plane);

}  // namespace quern::report

#include "codecs/lidar/geometry/fine_points.h"

namespace quern::codec::lidar {

FinePoints fine_points(std::span<const std::uint32_t> words, const Scale& scale) {
  FinePoints result;
  const std::size_t count = words.size() / 3;
  result.points.reserve(count);
  result.sources.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = fine_of(words[3 * i], scale);
    const auto y = fine_of(words[3 * i + 1], scale);
    const auto z = fine_of(words[3 * i + 2], scale);
    if (x && y && z) {
      result.points.push_back({*x, *y, *z});
      result.sources.push_back(static_cast<std::uint32_t>(i));
    } else {
      result.verbatim.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return result;
}

}  // namespace quern::codec::lidar

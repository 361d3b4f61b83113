// Which of the directions 0, 1, 2, ... steps from x, up to half a turn, a vector in the plane is nearest to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

inline constexpr unsigned kDirectionBits = 30;

/// Cosine and sine in units of 2^-30. As long as one, up to a few units.
struct Direction {
  std::int64_t x = INT64_C(1) << kDirectionBits;
  std::int64_t y = 0;

  bool operator==(const Direction&) const = default;
};

/// A table of directions, in somebody's memory.
struct StepSearch {
  static constexpr std::size_t kStarts = 4096;

  const Direction* table = nullptr;
  std::size_t size = 0;                   ///< at least 1
  const std::uint16_t* starts = nullptr;  ///< kStarts of them: a place in the table near the directions of each part

  /// The steps whose direction is nearest to that of a vector of components below 2^31.
  constexpr std::int64_t nearest(std::int64_t x, std::int64_t y) const {
    const std::int64_t up = y < 0 ? -y : y;
    // The last direction that is not beyond the vector.
    std::size_t below = starts[start_of(x, up)];
    while (below + 1 < size && !is_beyond(below + 1, x, up)) ++below;
    while (below > 0 && is_beyond(below, x, up)) --below;
    const std::size_t above = below + 1;
    // The sine of the angle to either neighbour; the angles are below a quarter turn but at the end of the table.
    if (above < size && table[above].y * x - table[above].x * up < table[below].x * up - table[below].y * x)
      below = above;
    const auto steps = static_cast<std::int64_t>(below);
    return y < 0 ? -steps : steps;
  }

  /// About where a direction lies on the way from x to -x, of kStarts parts; it only says where a search begins.
  static constexpr std::size_t start_of(std::int64_t x, std::int64_t up) {
    const std::int64_t sum = (x < 0 ? -x : x) + up;
    if (sum == 0) return 0;
    const double part = static_cast<double>(x) / static_cast<double>(sum);
    return static_cast<std::size_t>((1 - part) * (kStarts / 2 - 1));
  }

 private:
  constexpr bool is_beyond(std::size_t i, std::int64_t x, std::int64_t up) const {
    return table[i].x * up - table[i].y * x < 0;
  }
};

}  // namespace quern::kernels

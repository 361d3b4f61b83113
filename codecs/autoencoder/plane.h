// Blocks as a constant or a plane, in whole numbers.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "codecs/autoencoder/block_numbers.h"
#include "codecs/autoencoder/blocks.h"
#include "codecs/autoencoder/work_values.h"

namespace quern::codec::autoencoder {

using Slopes = std::array<std::int64_t, 3>;  ///< by axis; 0 along axes that a block has one place of

/// Twice the distance of a place from the middle of a whole block.
constexpr std::int64_t from_middle(std::uint64_t place, std::uint64_t extent) {
  return 2 * static_cast<std::int64_t>(place) - (static_cast<std::int64_t>(extent) - 1);
}

/// out[i] = the mean and, for each axis, slope * (twice the distance from the middle) / (4 extent) steps, to the nearest
/// unit. Extents of `whole` are powers of two.
inline void predict_plane(const Block& block, const Extents& whole, std::int64_t mean, const Slopes& slopes,
                          std::int64_t* out) {
  const auto term = [&](std::size_t axis, std::uint64_t place) -> std::uint64_t {
    if (slopes[axis] == 0) return 0;
    const auto shift = static_cast<unsigned>(std::bit_width(4 * whole[axis]) - 1);
    const std::uint64_t steps =
        static_cast<std::uint64_t>(slopes[axis]) * static_cast<std::uint64_t>(from_middle(place, whole[axis]));
    return static_cast<std::uint64_t>(
        static_cast<std::int64_t>((steps << kFractionBits) + (std::uint64_t{1} << (shift - 1))) >> shift);
  };
  std::size_t i = 0;
  for (std::uint64_t z = 0; z < block.extents[0]; ++z)
    for (std::uint64_t y = 0; y < block.extents[1]; ++y) {
      const std::uint64_t row = (static_cast<std::uint64_t>(mean) << kMeanShift) + term(0, z) + term(1, y);
      for (std::uint64_t x = 0; x < block.extents[2]; ++x) out[i++] = cut_value(row + term(2, x));
    }
}

}  // namespace quern::codec::autoencoder

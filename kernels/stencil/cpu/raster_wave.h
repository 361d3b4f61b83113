// Rows of a chunk in raster order that are decoded side by side, each a few columns behind the one above it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace quern::kernels {

inline constexpr std::size_t kWaveRows = 16;

/// Rows below each other in one plane, none of which has special elements. The two rows above them are known, with
/// their halos; residuals left of a row and right of it are 0, in all rows.
struct RasterWave {
  std::size_t rows = 0;  ///< at most kWaveRows
  std::size_t columns = 0;
  double* values = nullptr;  ///< of the first row; the next lies `stride` elements behind it
  std::uint32_t* magnitudes = nullptr;
  std::size_t stride = 0;
  /// What other planes give to predictions, times 2^weight_bits, and to contexts; `pitch` elements from row to row.
  const std::int64_t* far = nullptr;
  const std::uint32_t* context = nullptr;
  std::size_t pitch = 0;
  /// Weights: of the elements before, nearest first; of columns 2, 1, 0, -1, -2 in the row above; of columns 1, 0, -1
  /// in the row above that. Integers.
  std::array<double, 3> near{};
  std::array<double, 5> above{};
  std::array<double, 3> second{};
  /// Of magnitudes: of the two before; of columns 2, 1, 0, -1 in the row above; of column 0 in the row above that.
  std::array<std::uint32_t, 2> near_context{};
  std::array<std::uint32_t, 4> above_context{};
  std::uint32_t second_context = 0;
  unsigned weight_bits = 0;
  unsigned fraction_bits = 0;
  std::uint32_t most_magnitude = 0;  ///< larger ones count as this
  double most = 0;                   ///< values below it make sums below 2^51
  std::size_t lane = 0;              ///< of the first row; the next rows have the next lanes
};

}  // namespace quern::kernels

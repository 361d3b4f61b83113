// Axes of chunks in the array's terms.
#include "codecs/stencil/plan/array_levels.h"

#include <algorithm>
#include <array>
#include <bit>

namespace quern::codec::stencil {
namespace {

/// An axis that chunks in levels are walked along.
struct WalkedAxis {
  std::size_t grid_axis = 0;
  bool inner = false;       ///< the faster half of a grid axis that is split
  std::uint64_t whole = 1;  ///< extent in the array
  std::uint64_t chunk = 1;  ///< in a full chunk
  std::size_t first = 0;    ///< axes [first, last) of the array are walked as this one
  std::size_t last = 0;
  bool coarsened = false;  ///< levels keep every 2^level-th place of it

  /// Places kept when they are counted anew in each chunk.
  std::uint64_t points_by_chunks(std::uint64_t step) const {
    const std::uint64_t rest = whole % chunk;
    return whole / chunk * ((chunk - 1) / step + 1) + (rest > 0 ? (rest - 1) / step + 1 : 0);
  }
  /// The fastest of the array's axes with more than one place.
  std::size_t fastest(const Shape& shape) const {
    std::size_t axis = last;
    while (axis > first && shape[axis - 1] == 1) --axis;
    return axis > first ? axis - 1 : first;
  }
  /// True when it is more than one of the array's axes.
  bool merged(const Shape& shape) const {
    std::size_t count = 0;
    for (std::size_t a = first; a < last; ++a) count += shape[a] > 1 ? 1 : 0;
    return count > 1;
  }
};

struct WalkedAxes {
  std::array<WalkedAxis, 4> list{};
  std::size_t count = 0;

  WalkedAxes(const Shape& shape, const Layout& layout, const ChunkGrid& grid, const LevelsForm& form) {
    const std::array<std::size_t, 4> ends{0, layout.first, layout.second, shape.rank()};
    std::size_t longer = 0;
    for (std::size_t g = 0; g < 3; ++g) {
      const bool split = form.inner > 1 && form.split_axis == g;
      const std::uint64_t inner = split ? form.inner : 1;
      const std::size_t middle = split ? ends[g + 1] - 1 : ends[g + 1];
      list[count++] = {g, false, grid.extents[g] / inner, grid.chunk[g] / inner, ends[g], middle};
      if (split) list[count++] = {g, true, inner, inner, middle, ends[g + 1]};
    }
    for (std::size_t i = 0; i < count; ++i) longer += list[i].chunk > 1 ? 1 : 0;
    // The first of several axes may be walked in sequence; levels keep all of its places.
    bool sequential = form.sequential && longer > 1;
    for (std::size_t i = 0; i < count; ++i) {
      if (list[i].chunk == 1) continue;
      list[i].coarsened = !sequential;
      sequential = false;
    }
  }
};

}  // namespace

unsigned count_levels(const Shape& shape, const Layout& layout, const ChunkGrid& grid, const LevelsForm& form) {
  if ((!form.levels && !form.wavelet) || shape.elems() == 0) return 0;
  const WalkedAxes axes(shape, layout, grid, form);
  int top = 0;
  int most = 64;
  for (std::size_t i = 0; i < axes.count; ++i) {
    const WalkedAxis& axis = axes.list[i];
    if (!axis.coarsened) continue;
    if (form.wavelet && !axis.merged(shape)) {
      top = std::max(top, static_cast<int>(std::bit_width(axis.chunk - 1)));
      continue;
    }
    top = std::max(top, static_cast<int>(std::bit_width(axis.whole - 1)));
    if (axis.whole > axis.chunk) most = std::min(most, std::countr_zero(axis.chunk));
    if (axis.merged(shape)) most = std::min(most, std::countr_zero(shape[axis.fastest(shape)]));
  }
  return static_cast<unsigned>(std::min(top, most));
}

LevelForm array_level(const Shape& shape, const Layout& layout, const ChunkGrid& grid, const LevelsForm& form,
                      unsigned level) {
  LevelForm out;
  const std::uint64_t step = std::uint64_t{1} << level;
  std::array<std::uint64_t, kMaxRank> extents{};
  for (std::size_t a = 0; a < shape.rank(); ++a) extents[a] = shape[a];
  if (form.inner > 1) out.axes[form.split_axis].inner = form.inner;
  const WalkedAxes axes(shape, layout, grid, form);
  for (std::size_t g = 0; form.wavelet && g < 3; ++g)
    if (grid.chunk[g] < grid.extents[g]) out.axes[g].chunk = grid.chunk[g];
  for (std::size_t i = 0; i < axes.count; ++i) {
    const WalkedAxis& axis = axes.list[i];
    if (!axis.coarsened) continue;
    (axis.inner ? out.axes[axis.grid_axis].inner_step : out.axes[axis.grid_axis].outer_step) = step;
    std::uint64_t& extent = extents[axis.fastest(shape)];
    extent = form.wavelet && !axis.merged(shape) ? axis.points_by_chunks(step) : (extent - 1) / step + 1;
  }
  out.shape = Shape::make({extents.data(), shape.rank()}).value();
  return out;
}

}  // namespace quern::codec::stencil

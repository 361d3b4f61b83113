// The plane that a chunk beside a reference has before anything is decoded: the elements of the reference in units, and
// their way into the classes of a level.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <quern/codec.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/value_format.h"
#include "codecs/stencil/levels/view.h"

namespace quern::codec::stencil {

/// The elements of a reference as integers in units, in C order. They are kept within the format's limits; one that is
/// not finite, or farther outside than the limits are apart (a fill value), is taken for the one before it.
template <class Element>
void reference_in_units(const ConstBox3& reference, const LevelsValueFormat& format, double* out) {
  const auto low = static_cast<double>(format.low);
  const auto high = static_cast<double>(format.high);
  const double reach = high - low;
  const double inverse = 1 / format.unit();
  const auto rows = static_cast<std::size_t>(reference.extents[0] * reference.extents[1]);
  const auto columns = static_cast<std::size_t>(reference.extents[2]);
  double last = low;
  for (std::size_t r = 0; r < rows; ++r, out += columns) {
    const auto* const row = static_cast<const typename Element::Bits*>(reference.data) + row_offset(reference, r);
    for (std::size_t x = 0; x < columns; ++x) {
      const double value = (Element::value(row[x]) - format.base) * inverse;
      if (value >= low - reach && value <= high + reach) last = std::clamp(nearest(value), low, high);
      out[x] = last;
    }
  }
}

/// Fills the given plane of the classes of the open level but those that came from the next coarser one. `values`: of
/// reference_in_units.
template <class Value>
void load_given_plane(const LevelsView& view, const double* values, LevelGridOf<Value>& grid) {
  const LevelAxes& axes = view.axes;
  const unsigned level = grid.level();
  const auto dense = view.dense();
  const std::size_t step = view.row_step(level, dense);
  for (std::size_t c = level == axes.top() ? 0 : 1; c < kParityClasses; ++c) {
    const auto& own = grid.view(c);
    if (!own.exists) continue;
    const std::size_t columns = own.extents[axes.rank - 1];
    const std::size_t rows = own.rows / axes.planes();
    const std::size_t run = grid.run_rows(c);
    for (std::size_t r = 0; r < rows; ++r) {
      const RowIndex index = grid.index_of(c, r);
      const double* const from = values + view.row_start(c, level, index, dense);
      Value* const to = grid.values(c, index);
      kernels::MagnitudeOf<Value>* const magnitudes = grid.magnitudes(c, index);
      for (std::size_t x = 0; x < columns; ++x) to[x] = static_cast<Value>(from[x * step]);
      std::memset(magnitudes, 0, columns * sizeof(*magnitudes));
      grid.small().see(to, columns);
      grid.finish_row(c, to, magnitudes);
      if ((r + 1) % run == 0) grid.finish_run(c, index);
    }
  }
}

}  // namespace quern::codec::stencil

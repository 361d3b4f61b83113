// From coarse to fine: means of ordinary values on ever coarser grids, then missing places from the coarser grid and
// smoothed.
#include "codecs/stencil/wavelet/fill.h"

#include <algorithm>

#include <quern/memory.h>

#include "codecs/stencil/elements.h"

namespace quern::codec::stencil {
namespace {

constexpr int kSweeps = 3;

struct Grid {
  WaveletAxes axes;
  double* values = nullptr;
  const std::uint8_t* missing = nullptr;
  Vector<double> own_values;
  Vector<std::uint8_t> own_missing;
};

/// Place in a grid of half the extents.
std::size_t parent_of(std::size_t at, const AxisValues& fine, const AxisValues& coarse, std::size_t rank) {
  std::size_t result = 0;
  std::size_t stride = 1;
  for (std::size_t a = rank; a-- > 0; at /= fine[a]) {
    result += at % fine[a] / 2 * stride;
    stride *= coarse[a];
  }
  return result;
}

Grid coarser(const Grid& fine) {
  Grid coarse;
  coarse.axes.rank = fine.axes.rank;
  for (std::size_t a = 0; a < fine.axes.rank; ++a) coarse.axes.extents[a] = (fine.axes.extents[a] + 1) / 2;
  const std::size_t elems = coarse.axes.elems();
  coarse.own_values.assign(elems, 0.0);
  coarse.own_missing.assign(elems, 1);
  Vector<double> counts(elems, 0.0);
  for (std::size_t i = 0; i < fine.axes.elems(); ++i) {
    if (fine.missing[i] != 0) continue;
    const std::size_t to = parent_of(i, fine.axes.extents, coarse.axes.extents, fine.axes.rank);
    coarse.own_values[to] += fine.values[i];
    counts[to] += 1;
  }
  for (std::size_t i = 0; i < elems; ++i) {
    if (counts[i] == 0) continue;
    coarse.own_values[i] /= counts[i];
    coarse.own_missing[i] = 0;
  }
  coarse.values = coarse.own_values.data();
  coarse.missing = coarse.own_missing.data();
  return coarse;
}

/// Missing places become the mean of their neighbours, in order, a few times.
void smooth(const Grid& grid) {
  const AxisValues strides = grid.axes.strides();
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = 0; i < grid.axes.elems(); ++i) {
      if (grid.missing[i] == 0) continue;
      double sum = 0;
      double count = 0;
      for (std::size_t a = 0; a < grid.axes.rank; ++a) {
        const std::size_t place = i / strides[a] % grid.axes.extents[a];
        if (place > 0) sum += grid.values[i - strides[a]], count += 1;
        if (place + 1 < grid.axes.extents[a]) sum += grid.values[i + strides[a]], count += 1;
      }
      if (count > 0) grid.values[i] = sum / count;
    }
  }
}

void fill(const Grid& grid) {
  if (grid.axes.elems() > 1) {
    const Grid coarse = coarser(grid);
    fill(coarse);
    for (std::size_t i = 0; i < grid.axes.elems(); ++i)
      if (grid.missing[i] != 0)
        grid.values[i] = coarse.values[parent_of(i, grid.axes.extents, coarse.axes.extents, grid.axes.rank)];
  }
  smooth(grid);
}

}  // namespace

void fill_missing(const WaveletAxes& axes, const std::uint8_t* missing, double* values) {
  Grid grid;
  grid.axes.rank = axes.rank;
  grid.axes.extents = axes.extents;
  grid.values = values;
  grid.missing = missing;
  fill(grid);
  for (std::size_t i = 0; i < axes.elems(); ++i)
    if (missing[i] != 0) values[i] = nearest(values[i]);
}

}  // namespace quern::codec::stencil

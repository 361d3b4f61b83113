// What points beyond the grid are to be taken for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <quern/codec.h>

#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/view.h"
#include "kernels/common/log2_fixed.h"

namespace quern::codec::stencil {

/// Whether the last points of an axis lie nearer to the line through those before them than to the one before.
template <class Element>
Border choose_border(const LevelsView& view, const ConstBox3& in, double least_step) {
  using Bits = typename Element::Bits;
  const LevelAxes& axes = view.axes;
  constexpr std::size_t kLines = 512;
  const double inverse = 1 / least_step;
  std::uint64_t flat = 0;
  std::uint64_t line = 0;
  const auto cost = [](double d) {
    const double v = std::fabs(d);
    return kernels::log2_fixed(256 + static_cast<std::uint32_t>(v < 0x1p20 ? v * 512 : 0x1p29));
  };
  for (std::size_t axis = 0; axis < axes.rank; ++axis) {
    if (!axes.hierarchical(axis)) continue;
    for (unsigned level = 0; level < 3; ++level) {
      const std::size_t n = axes.points(axis, level);
      if (n < 4 || n % 2 != 0) continue;
      const std::size_t step = view.strides[axis] << level;
      const std::size_t lines = axes.elems() / axes.extents[axis];
      const std::size_t wanted = std::min(lines, kLines);
      for (std::size_t i = 0; i < wanted; ++i) {
        std::size_t rest = static_cast<std::size_t>(std::uint64_t{i} * lines / wanted);
        std::size_t at = (n - 1) * step;
        std::size_t special = (n - 1) * (view.special_strides[axis] << level);
        for (std::size_t a = axes.rank; a-- > 0;) {
          if (a == axis) continue;
          at += rest % axes.extents[a] * view.strides[a];
          special += rest % axes.extents[a] * view.special_strides[a];
          rest /= axes.extents[a];
        }
        if (in.special != nullptr && in.special[special] != 0) continue;
        const Bits* const data = static_cast<const Bits*>(in.data) + at;
        const double last = Element::value(*data) * inverse;
        const double before = Element::value(*(data - step)) * inverse;
        const double farther = Element::value(*(data - 3 * step)) * inverse;
        if (!(last - last == 0) || !(before - before == 0) || !(farther - farther == 0)) continue;
        flat += cost(last - before);
        line += cost(last - (1.5 * before - 0.5 * farther));
      }
    }
  }
  return line < flat ? Border::linear : Border::mirrored;
}

}  // namespace quern::codec::stencil

// Lifting along one axis after the other, several lines at once.
#include "codecs/stencil/wavelet/lifting.h"

#include <algorithm>

#include "kernels/stencil/wavelet_quantize.h"

namespace quern::codec::stencil {
namespace {

constexpr std::size_t kLines = kernels::kLiftedLines;  // lifted at once

/// Lines along one axis of a box.
struct Lines {
  std::size_t n = 0;       ///< their length
  std::size_t stride = 0;  ///< from one value of a line to the next
  std::size_t across = 0;  ///< from one line to the next
};

/// Rounds to nearest; sums are exact, ties go to even.
void lift_lines(double* first, const Lines& lines, std::size_t count, bool forward,
                const kernels::StencilKernels& kernels, double* room) {
  const std::size_t n = lines.n;
  const std::size_t lows = (n + 1) / 2;
  const auto place = [&](std::size_t i) { return i % 2 == 0 ? i / 2 : lows + i / 2; };
  if (count < kLines) std::fill_n(room, n * kLines, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    double* const to = room + (forward ? place(i) : i) * kLines;
    const double* const from = first + i * lines.stride;
    if (lines.across == 1) {
      std::copy_n(from, count, to);
    } else {
      for (std::size_t j = 0; j < count; ++j) to[j] = from[j * lines.across];
    }
  }
  // Low places look at the high ones before and after them, high places at the low ones; kLines doubles to a place.
  double* const high = room + lows * kLines;
  const auto lift_high = [&](double factor) { kernels.decode.lift(high, n - lows, room, lows, 0, factor); };
  const auto lift_low = [&](double factor) { kernels.decode.lift(room, lows, high, n - lows, 1, factor); };
  if (forward) {
    lift_high(kernels::wavelet_factor(0));
    lift_low(kernels::wavelet_factor(1));
    lift_high(kernels::wavelet_factor(2));
    lift_low(kernels::wavelet_factor(3));
  } else {
    lift_low(-kernels::wavelet_factor(3));
    lift_high(-kernels::wavelet_factor(2));
    lift_low(-kernels::wavelet_factor(1));
    lift_high(-kernels::wavelet_factor(0));
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double* const from = room + (forward ? i : place(i)) * kLines;
    double* const to = first + i * lines.stride;
    if (lines.across == 1) {
      std::copy_n(from, count, to);
    } else {
      for (std::size_t j = 0; j < count; ++j) to[j * lines.across] = from[j];
    }
  }
}

/// One level along one axis of the box of these extents at the array's beginning.
void lift_axis(const WaveletAxes& axes, const AxisValues& box, std::size_t axis, bool forward,
               const kernels::StencilKernels& kernels, double* values, double* room) {
  if (box[axis] < 2) return;
  const AxisValues strides = axes.strides();
  // Lines lie side by side along the last axis, those of the last along the one before.
  const std::size_t last = axes.rank - 1;
  const std::size_t side = axis != last ? last : axes.rank > 1 ? axes.rank - 2 : axes.rank;
  const std::size_t sides = side < axes.rank ? box[side] : 1;
  const Lines lines{box[axis], strides[axis], side < axes.rank ? strides[side] : 0};
  std::size_t bundles = 1;
  for (std::size_t a = 0; a < axes.rank; ++a)
    if (a != axis && a != side) bundles *= box[a];
  for (std::size_t b = 0; b < bundles; ++b) {
    std::size_t at = 0;
    std::size_t rest = b;
    for (std::size_t a = axes.rank; a-- > 0;) {
      if (a == axis || a == side) continue;
      at += rest % box[a] * strides[a];
      rest /= box[a];
    }
    for (std::size_t j = 0; j < sides; j += kLines)
      lift_lines(values + at + j * lines.across, lines, std::min(kLines, sides - j), forward, kernels, room);
  }
}

/// The box that a level of the joint decomposition splits, in all packets that hold level `last`.
AxisValues joint_box(const WaveletAxes& axes, unsigned level, unsigned last) {
  AxisValues box = axes.extents;
  for (std::size_t a = 0; a < axes.rank; ++a)
    box[a] = axes.points(a, std::min(a < axes.packets ? last : level, axes.levels[a]));
  return box;
}

}  // namespace

std::size_t lifting_room(const WaveletAxes& axes) { return longest_extent(axes) * kLines; }

void forward_wavelet(const WaveletAxes& axes, const kernels::StencilKernels& kernels, double* values, double* room) {
  for (std::size_t a = 0; a < axes.packets; ++a) {
    for (unsigned level = 0; level < axes.levels[a]; ++level) {
      AxisValues box = axes.extents;
      box[a] = axes.points(a, level);
      lift_axis(axes, box, a, true, kernels, values, room);
    }
  }
  for (unsigned level = 0; level < axes.depth(); ++level)
    for (std::size_t a = axes.packets; a < axes.rank; ++a)
      if (axes.levels[a] > level) lift_axis(axes, joint_box(axes, level, 0), a, true, kernels, values, room);
}

void inverse_wavelet(const WaveletAxes& axes, const kernels::StencilKernels& kernels, double* values, double* room,
                     unsigned last) {
  for (unsigned level = axes.depth(); level-- > last;)
    for (std::size_t a = axes.rank; a-- > axes.packets;)
      if (axes.levels[a] > level) lift_axis(axes, joint_box(axes, level, last), a, false, kernels, values, room);
  for (std::size_t a = axes.packets; a-- > 0;) {
    for (unsigned level = axes.levels[a]; level-- > last;) {
      AxisValues box = joint_box(axes, last, last);
      box[a] = axes.points(a, level);
      lift_axis(axes, box, a, false, kernels, values, room);
    }
  }
}

double mean_scale(unsigned passes) {
  constexpr double kPass = 0.8129162415701854;  // what a low pass makes of 1 is 1 / this
  double scale = 1;
  for (unsigned i = 0; i < passes; ++i) scale *= kPass;
  return scale;
}

std::int64_t band_step(unsigned step, int gain) {
  constexpr std::uint64_t kUp = 75340;    // K in units of 2^-16
  constexpr std::uint64_t kDown = 57007;  // 1 / K
  std::uint64_t factor = std::uint64_t{1} << 24;
  for (int i = 0; i < gain; ++i) factor = (factor * kDown + (1u << 15)) >> 16;
  for (int i = 0; i > gain; --i) factor = (factor * kUp + (1u << 15)) >> 16;
  const std::uint64_t result = (step * factor + (1u << 23)) >> 24;
  return static_cast<std::int64_t>(std::max<std::uint64_t>(result, 1));
}

}  // namespace quern::codec::stencil

// Bands in the order of coding, with what their contexts look at, and steps of the transform.
#include "codecs/stencil/device/wavelet_plans.h"

#include <algorithm>

#include "codecs/stencil/wavelet/lifting.h"

namespace quern::codec::stencil {

using kernels::WaveletBandPlan;
using kernels::WaveletLift;
using kernels::WaveletTap;

namespace {

/// Axes of a job that the chunk lacks.
std::size_t pad_of(const WaveletAxes& axes) { return kMaxAxes - axes.rank; }

void set_place(const WaveletAxes& axes, const WaveletBand& band, std::uint32_t& start, std::uint32_t* extents) {
  start = static_cast<std::uint32_t>(band_place(axes, band, {}));
  for (std::size_t a = 0; a < axes.rank; ++a) extents[pad_of(axes) + a] = static_cast<std::uint32_t>(band.extents[a]);
}

}  // namespace

void WaveletPlans::look(const WaveletAxes& axes, const WaveletBand& band, std::uint16_t weight, std::size_t halved,
                        const std::array<std::ptrdiff_t, kMaxAxes>& by) {
  if (weight == 0) return;
  WaveletTap& seen = taps.emplace_back();
  set_place(axes, band, seen.start, seen.extents);
  seen.weight = weight;
  for (std::size_t a = 0; a < axes.rank; ++a) {
    seen.by[pad_of(axes) + a] = static_cast<std::int8_t>(by[a]);
    seen.shift[pad_of(axes) + a] = halved >> (axes.rank - 1 - a) & 1;
  }
}
/// As BandReader::around; `halved` has the last axis lowest.
void WaveletPlans::around(const WaveletAxes& axes, const WaveletBand& band, const WaveletWeights& weights,
                          std::size_t feature, std::size_t halved) {
  look(axes, band, weights[feature], halved, {});
  for (std::size_t a = 0; a < axes.rank; ++a)
    for (const std::ptrdiff_t by : {-1, 1}) {
      std::array<std::ptrdiff_t, kMaxAxes> offset{};
      offset[a] = by;
      look(axes, band, weights[feature + 1], halved, offset);
    }
}
/// As for_own_sources.
void WaveletPlans::own(const WaveletAxes& axes, const WaveletBand& band, const WaveletWeights& weights) {
  const std::size_t rank = axes.rank;
  const auto at = [&](std::size_t feature, std::ptrdiff_t planes, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    std::array<std::ptrdiff_t, kMaxAxes> by{};
    by[rank - 1] = columns;
    by[rank - 2] = rows;
    if (planes != 0) by[rank - 3] = planes;
    look(axes, band, weights[feature], 0, by);
  };
  if (rank < 2) return;
  at(kAbove, 0, -1, 0);
  for (const std::ptrdiff_t by : {-1, 1}) {
    at(kAboveSides, 0, -1, by);
    at(kAboveFar, 0, -1, 2 * by);
  }
  at(kAboveFar, 0, -2, 0);
  if (rank < 3) return;
  at(kBack, -1, 0, 0);
  for (const std::ptrdiff_t by : {-1, 1}) {
    at(kBackSides, -1, by, 0);
    at(kBackSides, -1, 0, by);
  }
  at(kBackFar, -2, 0, 0);
  if (rank < 4) return;
  look(axes, band, weights[kVolume], 0, {-1, 0, 0, 0});
}

/// As for_sources, bands that are complete first.
void WaveletPlans::add_bands(const WaveletModel& model) {
  const WaveletAxes& axes = model.axes;
  for_bands(axes, [&](const WaveletBand& band) {
    WaveletBandPlan plan = begin(axes, band, model.constants[band.group], model.weights);
    plan.step = band_step(model.step, band.gain);
    const unsigned depth = axes.depth();
    if (band.high != 0 && band.level + 1 < depth) {
      const std::size_t split = axes.split(band.level + 1);
      if ((band.high & split) != 0)
        around(axes, WaveletBand(axes, band.packet, band.level + 1, band.high & split), model.weights, kParent, split);
    }
    if (band.high != 0) {
      const std::size_t split = axes.split(band.level);
      for (const std::uint8_t c : kClassOrder) {
        if (c == band.high) break;
        if (c != 0 && (c & ~split) == 0)
          around(axes, WaveletBand(axes, band.packet, band.level, c), model.weights, kSiblings, 0);
      }
    }
    for (std::size_t a = 0; a < axes.packets; ++a) {
      if (band.packet[a] == 0) continue;
      auto packet = band.packet;
      --packet[a];
      const std::size_t halved = packet[a] > 0 ? std::size_t{1} << (axes.rank - 1 - a) : 0;
      around(axes, WaveletBand(axes, packet, band.level, band.high), model.weights, kPacketParent, halved);
    }
    end(axes, band, model.weights, plan);
    return true;
  });
}

/// As for_correction_sources: corrections are one band.
void WaveletPlans::add_corrections(const WaveletModel& model) {
  const WaveletAxes& axes = model.axes;
  WaveletAxes plain;
  plain.rank = axes.rank;
  plain.extents = axes.extents;
  const WaveletBand whole(plain, {}, 0, 0);
  WaveletBandPlan plan = begin(plain, whole, model.correction_constant, model.correction_weights);
  std::array<unsigned, kMaxAxes> packet{};
  const std::size_t split = axes.split(0);
  std::size_t halved = split;
  for (std::size_t a = 0; a < axes.packets; ++a) {
    packet[a] = axes.levels[a];
    if (packet[a] > 0) halved |= std::size_t{1} << (axes.rank - 1 - a);
  }
  for (std::size_t c = split == 0 ? 0 : 1; c < kParityClasses; ++c) {
    if ((c & ~split) != 0) continue;
    around(axes, WaveletBand(axes, packet, 0, c), model.correction_weights, kParent, halved);
    if (split == 0) break;
  }
  end(plain, whole, model.correction_weights, plan);
}

WaveletBandPlan WaveletPlans::begin(const WaveletAxes& axes, const WaveletBand& band, std::uint16_t constant,
                                    const WaveletWeights& weights) {
  WaveletBandPlan plan;
  set_place(axes, band, plan.start, plan.extents);
  plan.rows = static_cast<std::uint32_t>(band.rows());
  plan.rows_before = rows_;
  plan.codes_before = codes_;
  rows_ += plan.rows;
  codes_ += plan.rows * static_cast<std::uint32_t>(band.columns());
  plan.constant = constant;
  plan.near[0] = weights[kWest];
  plan.near[1] = weights[kWestOfWest];
  plan.taps = static_cast<std::uint32_t>(taps.size());
  return plan;
}
void WaveletPlans::end(const WaveletAxes& axes, const WaveletBand& band, const WaveletWeights& weights,
                       WaveletBandPlan& plan) {
  plan.known_taps = static_cast<std::uint32_t>(taps.size()) - plan.taps;
  own(axes, band, weights);
  plan.own_taps = static_cast<std::uint32_t>(taps.size()) - plan.taps - plan.known_taps;
  bands.push_back(plan);
}

/// As inverse_wavelet.
void WaveletPlans::add_lifts(const WaveletAxes& axes) {
  for (unsigned level = axes.depth(); level-- > 0;) {
    AxisValues box = axes.extents;
    for (std::size_t a = axes.packets; a < axes.rank; ++a) box[a] = axes.points(a, std::min(level, axes.levels[a]));
    for (std::size_t a = axes.rank; a-- > axes.packets;)
      if (axes.levels[a] > level) lift(axes, box, a);
  }
  for (std::size_t a = axes.packets; a-- > 0;) {
    for (unsigned level = axes.levels[a]; level-- > 0;) {
      AxisValues box = axes.extents;
      box[a] = axes.points(a, level);
      lift(axes, box, a);
    }
  }
}
void WaveletPlans::lift(const WaveletAxes& axes, const AxisValues& box, std::size_t axis) {
  if (box[axis] < 2) return;
  WaveletLift& step = lifts.emplace_back();
  for (std::size_t a = 0; a < axes.rank; ++a) step.box[pad_of(axes) + a] = static_cast<std::uint32_t>(box[a]);
  step.axis = static_cast<std::uint32_t>(pad_of(axes) + axis);
}

void set_wavelet_places(const WaveletAxes& axes, const AxisValues& strides, const AxisValues& special_strides,
                        kernels::WaveletJob& job) {
  const AxisValues places = axes.strides();
  for (std::size_t a = 0; a < axes.rank; ++a) {
    const std::size_t to = pad_of(axes) + a;
    job.extents[to] = static_cast<std::uint32_t>(axes.extents[a]);
    job.places[to] = static_cast<std::uint32_t>(places[a]);
    job.strides[to] = strides[a];
    job.special_strides[to] = special_strides[a];
  }
}

}  // namespace quern::codec::stencil

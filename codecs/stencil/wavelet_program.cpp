// Parsing with the decoder's own functions, then bands with what their contexts look at, and steps of the transform.
#include "codecs/stencil/wavelet_program.h"

#include <algorithm>

#include "codecs/stencil/program_parts.h"
#include "codecs/stencil/wavelet_axes.h"
#include "codecs/stencil/wavelet_context.h"
#include "codecs/stencil/wavelet_lifting.h"
#include "codecs/stencil/wavelet_model.h"
#include "kernels/core/wavelet_program.h"

namespace quern::codec::stencil {
namespace {

using kernels::WaveletBandPlan;
using kernels::WaveletLift;
using kernels::WaveletLook;
using kernels::WaveletProgram;

static_assert(kernels::kMostWaveletMagnitude == kMaxWaveletMagnitude);

class ProgramMaker {
 public:
  ProgramMaker(const ChunkSpec& spec, const MutableBox3& box)
      : spec_(spec), masked_(box.special != nullptr), view_(box, spec.form), pad_(kMaxAxes - view_.axes.rank) {}

  bool make(std::span<const std::uint8_t> in, Vector<std::uint8_t>& out) {
    Vector<std::uint16_t> constants(kMaxWaveletGroups);
    model_.axes = wavelet_axes(view_);
    model_.constants = constants.data();
    if (!read_wavelet_model(in, model_).ok() || model_.values.masked != masked_) return false;
    if (!parts_.take_starts(model_.values, head_.serving)) return false;
    Reader reader(in);
    if (!parts_.take_exceptions(spec_.dtype, reader, axes().elems())) return false;
    LaneSources lanes;
    if (!lanes.open(in.subspan(static_cast<std::size_t>(reader.position()))).ok()) return false;
    parts_.take_lanes(lanes, head_.lanes);
    plan_bands();
    list_lifts();
    append(out);
    return true;
  }

 private:
  const WaveletAxes& axes() const { return model_.axes; }

  void set_place(const WaveletAxes& axes, const WaveletBand& band, std::uint32_t& start, std::uint32_t* extents) const {
    start = static_cast<std::uint32_t>(band_place(axes, band, {}));
    for (std::size_t a = 0; a < axes.rank; ++a) extents[pad_ + a] = static_cast<std::uint32_t>(band.extents[a]);
  }

  void look(const WaveletAxes& axes, const WaveletBand& band, std::uint16_t weight, std::size_t halved,
            const std::array<std::ptrdiff_t, kMaxAxes>& by) {
    if (weight == 0) return;
    WaveletLook& look = looks_.emplace_back();
    set_place(axes, band, look.start, look.extents);
    look.weight = weight;
    for (std::size_t a = 0; a < axes.rank; ++a) {
      look.by[pad_ + a] = static_cast<std::int8_t>(by[a]);
      look.shift[pad_ + a] = halved >> (axes.rank - 1 - a) & 1;
    }
  }
  /// As BandReader::around; `halved` has the last axis lowest.
  void around(const WaveletBand& band, const WaveletWeights& weights, std::size_t feature, std::size_t halved) {
    look(axes(), band, weights[feature], halved, {});
    for (std::size_t a = 0; a < axes().rank; ++a)
      for (const std::ptrdiff_t by : {-1, 1}) {
        std::array<std::ptrdiff_t, kMaxAxes> offset{};
        offset[a] = by;
        look(axes(), band, weights[feature + 1], halved, offset);
      }
  }
  /// As for_own_sources.
  void own(const WaveletAxes& axes, const WaveletBand& band, const WaveletWeights& weights) {
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
  void plan_bands() {
    std::size_t rows = 0;
    for_bands(axes(), [&](const WaveletBand& band) {
      WaveletBandPlan plan = begin(axes(), band, rows, model_.constants[band.group], model_.weights);
      plan.step = band_step(model_.step, band.gain);
      const unsigned depth = axes().depth();
      if (band.high != 0 && band.level + 1 < depth) {
        const std::size_t split = axes().split(band.level + 1);
        if ((band.high & split) != 0)
          around(WaveletBand(axes(), band.packet, band.level + 1, band.high & split), model_.weights, kParent, split);
      }
      if (band.high != 0) {
        const std::size_t split = axes().split(band.level);
        for (const std::uint8_t c : kClassOrder) {
          if (c == band.high) break;
          if (c != 0 && (c & ~split) == 0)
            around(WaveletBand(axes(), band.packet, band.level, c), model_.weights, kSiblings, 0);
        }
      }
      for (std::size_t a = 0; a < axes().packets; ++a) {
        if (band.packet[a] == 0) continue;
        auto packet = band.packet;
        --packet[a];
        const std::size_t halved = packet[a] > 0 ? std::size_t{1} << (axes().rank - 1 - a) : 0;
        around(WaveletBand(axes(), packet, band.level, band.high), model_.weights, kPacketParent, halved);
      }
      end(axes(), band, model_.weights, plan);
      return true;
    });
    head_.band_count = static_cast<std::uint32_t>(bands_.size());
    if (model_.correction == 0) return;
    // As for_correction_sources: corrections are one band.
    WaveletAxes plain;
    plain.rank = axes().rank;
    plain.extents = axes().extents;
    const WaveletBand whole(plain, {}, 0, 0);
    WaveletBandPlan plan = begin(plain, whole, rows, model_.correction_constant, model_.correction_weights);
    std::array<unsigned, kMaxAxes> packet{};
    const std::size_t split = axes().split(0);
    std::size_t halved = split;
    for (std::size_t a = 0; a < axes().packets; ++a) {
      packet[a] = axes().levels[a];
      if (packet[a] > 0) halved |= std::size_t{1} << (axes().rank - 1 - a);
    }
    for (std::size_t c = split == 0 ? 0 : 1; c < kParityClasses; ++c) {
      if ((c & ~split) != 0) continue;
      around(WaveletBand(axes(), packet, 0, c), model_.correction_weights, kParent, halved);
      if (split == 0) break;
    }
    end(plain, whole, model_.correction_weights, plan);
  }

  WaveletBandPlan begin(const WaveletAxes& axes, const WaveletBand& band, std::size_t& rows, std::uint16_t constant,
                        const WaveletWeights& weights) const {
    WaveletBandPlan plan;
    set_place(axes, band, plan.start, plan.extents);
    plan.rows = static_cast<std::uint32_t>(band.rows());
    plan.rows_before = static_cast<std::uint32_t>(rows);
    rows += band.rows();
    plan.constant = constant;
    plan.near[0] = weights[kWest];
    plan.near[1] = weights[kWestOfWest];
    plan.looks = static_cast<std::uint32_t>(looks_.size());
    return plan;
  }
  void end(const WaveletAxes& axes, const WaveletBand& band, const WaveletWeights& weights, WaveletBandPlan& plan) {
    plan.known_looks = static_cast<std::uint32_t>(looks_.size()) - plan.looks;
    own(axes, band, weights);
    plan.own_looks = static_cast<std::uint32_t>(looks_.size()) - plan.looks - plan.known_looks;
    bands_.push_back(plan);
  }

  /// As inverse_wavelet.
  void list_lifts() {
    for (unsigned level = axes().depth(); level-- > 0;) {
      AxisValues box = axes().extents;
      for (std::size_t a = axes().packets; a < axes().rank; ++a)
        box[a] = axes().points(a, std::min(level, axes().levels[a]));
      for (std::size_t a = axes().rank; a-- > axes().packets;)
        if (axes().levels[a] > level) lift(box, a);
    }
    for (std::size_t a = axes().packets; a-- > 0;) {
      for (unsigned level = axes().levels[a]; level-- > 0;) {
        AxisValues box = axes().extents;
        box[a] = axes().points(a, level);
        lift(box, a);
      }
    }
  }
  void lift(const AxisValues& box, std::size_t axis) {
    if (box[axis] < 2) return;
    WaveletLift& lift = lifts_.emplace_back();
    for (std::size_t a = 0; a < axes().rank; ++a) lift.box[pad_ + a] = static_cast<std::uint32_t>(box[a]);
    lift.axis = static_cast<std::uint32_t>(pad_ + axis);
  }

  void append(Vector<std::uint8_t>& out) {
    const AxisValues places = axes().strides();
    for (std::size_t a = 0; a < axes().rank; ++a) {
      head_.extents[pad_ + a] = static_cast<std::uint32_t>(axes().extents[a]);
      head_.places[pad_ + a] = static_cast<std::uint32_t>(places[a]);
      head_.strides[pad_ + a] = view_.strides[a];
      head_.special_strides[pad_ + a] = view_.special_strides[a];
    }
    head_.element = static_cast<kernels::Element>(spec_.dtype);
    head_.masked = masked_;
    head_.base = model_.values.base;
    head_.unit = model_.values.step;
    head_.correction = static_cast<double>(model_.correction);
    for (const std::size_t i : {0, 1}) head_.offsets[i] = model_.offsets[i];
    head_.lift_count = static_cast<std::uint32_t>(lifts_.size());
    head_.table_count = static_cast<std::uint32_t>(parts_.starts.size());
    head_.exception_count = static_cast<std::uint32_t>(parts_.exceptions.size());
    std::uint32_t bytes = 0;
    const auto take = [&](std::size_t width) {
      const std::uint32_t begin = bytes;
      bytes += static_cast<std::uint32_t>(kernels::program_aligned(axes().elems() * width));
      return begin;
    };
    head_.values = take(sizeof(double));
    head_.room = take(sizeof(double));
    head_.magnitudes = take(sizeof(std::uint32_t));
    head_.corrections = take(sizeof(std::uint32_t));
    head_.head.work_bytes = bytes;
    ProgramAppender program(out, sizeof head_);
    head_.bands = program.add(bands_);
    head_.looks = program.add(looks_);
    head_.lifts = program.add(lifts_);
    head_.starts = program.add(parts_.starts);
    head_.exceptions = program.add(parts_.exceptions);
    head_.words = program.add(parts_.words);
    head_.head.bytes = program.bytes();
    program.set_head(head_);
  }

  const ChunkSpec& spec_;
  bool masked_;
  LevelsView view_;
  std::size_t pad_;
  WaveletModel model_;
  WaveletProgram head_;
  Vector<WaveletBandPlan> bands_;
  Vector<WaveletLook> looks_;
  Vector<WaveletLift> lifts_;
  ProgramParts parts_;
};

}  // namespace

bool append_wavelet_program(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                            Vector<std::uint8_t>& out) {
  if (!spec.form.wavelet || in.empty() || in[0] != static_cast<std::uint8_t>(Mode::wavelet)) return false;
  return ProgramMaker(spec, box).make(in.subspan(1), out);
}

}  // namespace quern::codec::stencil

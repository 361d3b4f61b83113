// From a chunk's model to its waves.
#include "codecs/stencil/raster/waves.h"
#include "kernels/stencil/rules.h"

#include <algorithm>
#include <cmath>

namespace quern::codec::stencil {
namespace {

using kernels::RasterWave;
using kernels::StencilShape;
using kernels::Tap;

/// Null: out of range.
template <class Weights>
constexpr auto* pick(Weights& weights, int index) {
  return index >= 0 && index < static_cast<int>(weights.size()) ? &weights[static_cast<std::size_t>(index)] : nullptr;
}

/// Where the wave has the weight of a tap of its own plane; null: of another plane, or nowhere.
template <class Wave>
constexpr auto* weight_at(Wave& wave, const Tap& tap) {
  if (tap.plane != 0) return pick(wave.near, -1);
  if (tap.row == 0) return pick(wave.near, -1 - tap.column);
  if (tap.row == -1) return pick(wave.above, 2 - tap.column);
  return pick(wave.second, tap.row == -2 ? 1 - tap.column : -1);
}
template <class Wave>
constexpr auto* context_weight_at(Wave& wave, const Tap& tap) {
  if (tap.plane != 0) return pick(wave.near_context, -1);
  if (tap.row == 0) return pick(wave.near_context, -1 - tap.column);
  if (tap.row == -1) return pick(wave.above_context, 2 - tap.column);
  return tap.row == -2 && tap.column == 0 ? &wave.second_context : nullptr;
}

/// Waves have a place for every tap in the element's own plane.
constexpr bool all_have_places() {
  RasterWave wave;
  for (const Tap& tap : kernels::all_taps(StencilShape::planes))
    if (tap.plane == 0 && weight_at(wave, tap) == nullptr) return false;
  for (std::size_t t = 0; t < kernels::context_taps(StencilShape::planes).size(); ++t) {
    const Tap& tap = kernels::context_taps(StencilShape::planes)[t];
    if ((tap.plane == 0) != (t < kernels::kPlaneContextTaps)) return false;
    if (tap.plane == 0 && context_weight_at(wave, tap) == nullptr) return false;
  }
  return true;
}
static_assert(all_have_places());

}  // namespace

void RasterWaves::start(const kernels::StencilExtents& extents, const RasterModel& model) {
  constexpr int kExactBits = 51;
  for (std::size_t p = 0; p < waves_.size(); ++p) {
    RasterWave& wave = waves_[p];
    wave = {};
    wave.columns = extents.columns;
    wave.far = far_;
    wave.context = context_;
    wave.pitch = pitch_;
    wave.weight_bits = model.format.weight_bits;
    wave.fraction_bits = model.format.fraction_bits;
    wave.most_magnitude = kernels::kMaxContextMagnitude;
    wave.most = std::ldexp(1.0, kExactBits - static_cast<int>(model.format.weight_bits + kWeightSumBits) - 1);
    const std::size_t c = 2 * p + 1;
    const kernels::TapList list = kernels::taps_of(extents.shape(), c, model.mean);
    for (std::size_t t = 0; t < list.count; ++t)
      if (double* const weight = weight_at(wave, list.taps[t])) *weight = static_cast<double>(model.weights[c][t]);
    const auto contexts = kernels::context_taps(extents.shape());
    for (std::size_t t = 0; t < contexts.size(); ++t)
      if (std::uint32_t* const weight = context_weight_at(wave, contexts[t])) *weight = model.context_weights[t];
  }
}

bool RasterWaves::decode(const kernels::StencilKernels& kernels, WorkPlanes& planes, std::size_t plane, std::size_t row,
                         const SplitWeights& split, const RasterModel& model, const kernels::ResidualTables& tables,
                         kernels::DecodeStreams& lanes) {
  RasterWave& wave = waves_[std::min(plane, waves_.size() - 1)];
  wave.rows = rows_from(planes, row);
  wave.values = planes.values(plane, row);
  wave.magnitudes = planes.magnitudes(plane, row);
  wave.stride = planes.geometry().stride;
  wave.lane = plane * planes.extents().rows + row;
  for (std::size_t i = 0; i < wave.rows; ++i) {
    planes.far_sums_of_planes(kernels, plane, row + i, split, far_ + i * pitch_);
    planes.context_sums_of_planes(kernels, plane, row + i, model, context_ + i * pitch_);
  }
  if (!kernels.decode.decode_wave(wave, tables, lanes)) return false;
  for (std::size_t i = 0; i < wave.rows; ++i) planes.finish_row(plane, row + i);
  return true;
}

}  // namespace quern::codec::stencil

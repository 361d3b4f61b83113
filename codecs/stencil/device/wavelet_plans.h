// What jobs say of bands under the wavelet and of its lifting (kernels/stencil/wavelet_job.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/stencil/wavelet/axes.h"
#include "codecs/stencil/wavelet/context.h"
#include "codecs/stencil/wavelet/model.h"
#include "kernels/stencil/wavelet_job.h"

namespace quern::codec::stencil {

/// Tables of a job as they grow. All functions may throw std::bad_alloc.
class WaveletPlans {
 public:
  Vector<kernels::WaveletBandPlan> bands;
  Vector<kernels::WaveletTap> taps;
  Vector<kernels::WaveletLift> lifts;

  /// The bands of the model's axes, and what for_sources() visits, bands that are complete first; no look without a
  /// weight.
  void add_bands(const WaveletModel& model);
  /// Behind them the corrections, with what for_correction_sources() visits.
  void add_corrections(const WaveletModel& model);
  /// As inverse_wavelet() lifts. As forward_wavelet(), the other way round.
  void add_lifts(const WaveletAxes& axes);

 private:
  kernels::WaveletBandPlan begin(const WaveletAxes& axes, const WaveletBand& band, std::uint16_t constant,
                                 const WaveletWeights& weights);
  void end(const WaveletAxes& axes, const WaveletBand& band, const WaveletWeights& weights,
           kernels::WaveletBandPlan& plan);
  void look(const WaveletAxes& axes, const WaveletBand& band, std::uint16_t weight, std::size_t halved,
            const std::array<std::ptrdiff_t, kMaxAxes>& by);
  void around(const WaveletAxes& axes, const WaveletBand& band, const WaveletWeights& weights, std::size_t feature,
              std::size_t halved);
  void own(const WaveletAxes& axes, const WaveletBand& band, const WaveletWeights& weights);
  void lift(const WaveletAxes& axes, const AxisValues& box, std::size_t axis);

  std::uint32_t rows_ = 0;  ///< of the bands so far
  std::uint32_t codes_ = 0;
};

/// Extents, places and strides of a chunk, whose elements have these strides along the axes.
void set_wavelet_places(const WaveletAxes& axes, const AxisValues& strides, const AxisValues& special_strides,
                        kernels::WaveletJob& job);

}  // namespace quern::codec::stencil

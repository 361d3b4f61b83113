// What a chunk under the wavelet transform stores besides its codes.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/wavelet/axes.h"
#include "codecs/stencil/wavelet/context.h"
#include "coding/distributions.h"
#include "coding/value_format.h"
#include "kernels/stencil/wavelet_quantize.h"

namespace quern::codec::stencil {

inline constexpr unsigned kWaveletStepBits = 20;
inline constexpr unsigned kOffsetBits = 5;  ///< of reconstruction offsets, in units of 2^-6, two's complement

struct WaveletModel {
  coding::ValueFormat format;  ///< a unit is a step: no fraction bits
  bool masked = false;         ///< the segment has a mask
  WaveletAxes axes;
  unsigned step = 1;             ///< of coefficients, in units
  unsigned correction = 0;       ///< what a correction of one adds, in units; 0: none occur
  std::array<int, 2> offsets{};  ///< added to magnitudes of 1, and of 2 and more, in steps / 64
  WaveletWeights weights{};
  std::uint16_t* constants = nullptr;  ///< of each group of bands; room for kMaxWaveletGroups that the caller gives
  WaveletWeights correction_weights{};
  std::uint16_t correction_constant = 0;
  coding::Distributions distributions{};
};

/// The coefficient that a code stands for in a band of that step.
inline double coefficient_of(const WaveletModel& model, std::int64_t step, std::int32_t code) {
  return kernels::wavelet_coefficient(code, model.offsets[0], model.offsets[1], step);
}

void write_wavelet_model(const WaveletModel& model, Vector<std::uint8_t>& out);
/// Reads the model of a chunk whose rank and extents `model.axes` has, everything but the room for constants; advances
/// `bytes`. `corrupt` when it breaks a rule.
Status read_wavelet_model(std::span<const std::uint8_t>& bytes, WaveletModel& model);

}  // namespace quern::codec::stencil

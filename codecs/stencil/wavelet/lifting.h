// The Cohen-Daubechies-Feauveau 9/7 wavelet by lifting (I. Daubechies, W. Sweldens, "Factoring wavelet transforms into
// lifting steps", 1998), on integers: every step rounds, so it can be undone exactly and comes out the same everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codecs/stencil/wavelet/axes.h"
#include "kernels/stencil/cpu/stencil.h"

namespace quern::codec::stencil {

/// Room that both directions need, in elements.
std::size_t lifting_room(const WaveletAxes& axes);

/// Transforms in place: afterwards low coefficients lie before high ones along every axis. Values are integers; the
/// scaling that would make the transform nearly orthonormal is left out.
void forward_wavelet(const WaveletAxes& axes, const kernels::StencilKernels& kernels, double* values, double* room);
/// Undoes levels down to `last`: all, or those that leave low values of that level, as many along an axis as
/// WaveletAxes::points says, at the array's beginning.
void inverse_wavelet(const WaveletAxes& axes, const kernels::StencilKernels& kernels, double* values, double* room,
                     unsigned last = 0);

/// What a low value is to be multiplied by so that it is a mean of values, after `passes` low passes along any axes.
double mean_scale(unsigned passes);

/// Distance of codes in a band for which orthonormal coefficients would have distance `step`: step * K^-gain, K =
/// 1.149604..., in fixed point; at least 1.
std::int64_t band_step(unsigned step, int gain);

}  // namespace quern::codec::stencil

// What encoders of chunks under the wavelet choose from, and by which rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <quern/memory.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/range.h"
#include "codecs/stencil/wavelet/axes.h"

namespace quern::codec::stencil {

/// Steps of coefficients, in errors allowed: where to begin, larger ones while they pay, else a smaller one. The larger
/// the step, the more corrections, which do less for the PSNR than coefficients do.
inline constexpr std::array<double, 3> kWaveletSteps{2.2, 2.75, 3.4};
inline constexpr double kSmallWaveletStep = 1.8;
inline constexpr double kWaveletCorrection = 1.5;  ///< what a correction of one adds, in errors allowed

inline double first_wavelet_step(bool for_psnr) {
  constexpr double kPsnrStep = 1;
  return for_psnr ? kPsnrStep : kWaveletSteps[0];
}

/// What values are counted in.
struct WaveletUnits {
  double base = 0;  ///< value of 0
  double unit = 0;
  int bits = 0;  ///< the error allowed is 2^bits units
};
/// None when values are too large against the bound.
std::optional<WaveletUnits> wavelet_units(const EncodeSpec& spec, const ChunkRange& range, const WaveletAxes& axes);
/// Errors allowed in units.
unsigned wavelet_step_units(const WaveletUnits& units, double step);

/// Transforms to try, in the order of their numbers: packets or none, of few or many levels. May throw std::bad_alloc.
Vector<WaveletAxes> wavelet_transforms(const WaveletAxes& plain);

/// What fits of context weights take.
struct WaveletEffort {
  std::size_t samples = 49152;  ///< of coefficients, and of corrections
  std::size_t rounds = 32;
  bool distributions = true;  ///< are fitted, not only estimated
};
inline constexpr std::size_t kWaveletRoundsAgain = 8;  ///< of a fit that begins from weights of another step

/// How many rows of a band are samples, of a chunk of so many elements; the i-th is row i * rows / that.
std::size_t sampled_rows(const WaveletBand& band, std::size_t elems, const WaveletEffort& effort);

/// Rows of a chunk whose corrections are samples.
struct CorrectionRows {
  std::size_t columns = 1;
  std::size_t rows = 1;
  std::size_t wanted = 1;

  CorrectionRows(const WaveletAxes& axes, const WaveletEffort& effort)
      : columns(axes.extents[axes.rank - 1]),
        rows(axes.elems() / columns),
        wanted(rows < effort.samples / columns + 1 ? rows : effort.samples / columns + 1) {}

  bool sampled(std::size_t row) const { return row * wanted / rows != (row + 1) * wanted / rows; }
  float weight() const { return static_cast<float>(rows) / static_cast<float>(wanted); }
};

/// How far coefficients lie beyond codes of magnitude 1, and of 2 and more (kernels/stencil/wavelet_quantize.h).
struct WaveletExcess {
  std::array<std::int64_t, 2> sums{};
  std::array<std::int64_t, 2> counts{};
};
/// Reconstruction offsets: the means, as a model has them.
std::array<int, 2> wavelet_offsets(const WaveletExcess& excess);

}  // namespace quern::codec::stencil

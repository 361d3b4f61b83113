// What a device is told to encode a chunk under the wavelet. Lanes count the codes of some transforms, and the host
// takes one of them; they quantize its coefficients and gather what the host fits contexts to; they make symbols of the
// codes, undo the transform, find corrections and exceptions, and gather the same of corrections; they make symbols of
// these. From the counts the host makes distributions, and lanes write the residuals. A chunk's elements travel once,
// and all jobs follow each other in the same working memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/encode_task.h"
#include "kernels/common/lanes.h"
#include "kernels/stencil/wavelet_job.h"

namespace quern::kernels {

/// A transform to try: its parts of the tables.
struct WaveletTrial {
  std::uint32_t bands = 0;
  std::uint32_t band_count = 0;
  std::uint32_t lifts = 0;
  std::uint32_t lift_count = 0;
};

/// A row of which all columns are samples: in `out`, counted in numbers of 32 bits, kWaveletFeatureRows rows as long.
/// The first has the magnitudes of the row itself, the one of number f what is seen by taps of weight f.
struct WaveletSampleRow {
  std::uint32_t band = 0;
  std::uint32_t row = 0;
  std::uint32_t out = 0;
};
inline constexpr std::uint32_t kWaveletFeatureRows = 15;

/// What samples begin with.
struct WaveletSampleHead {
  std::int64_t excess[2] = {0, 0};  ///< of codes of magnitude 1, and of more: see wavelet_excess()
  std::int64_t counts[2] = {0, 0};
  std::uint32_t corrected = 0;  ///< not 0: there are corrections
};

enum class WaveletEncodeStep : std::uint32_t {
  transforms,  ///< counts tokens of the codes of all bands, kResidualTokens counts for each where samples are
  quantize,    ///< codes of one transform, and samples of them
  code,        ///< their symbols; corrections and exceptions; samples of corrections
  correct,     ///< symbols of corrections
};

/// Model as decoders have it: its lanes, distributions, exceptions and words say nothing. Elements lie side by side in
/// C order of the axes.
struct WaveletEncodeJob {
  WaveletJob wavelet;
  WaveletEncodeStep step = WaveletEncodeStep::transforms;
  double bound = 0;
  double inverse = 0;     ///< of the unit
  double correction = 0;  ///< what a correction of one adds, if there are any
  std::uint32_t trial_count = 0;
  std::uint32_t sample_row_count = 0;
  std::uint32_t trials = 0;  ///< bytes from the job's begin; so the next one
  std::uint32_t sample_rows = 0;
  std::uint32_t exceptions = 0;  ///< how many there is room for
  std::uint32_t found = 0;       ///< how many the step before has found
  /// Bytes of the working memory. Codes and symbols in the order of coding, those of corrections behind.
  std::uint32_t codes = 0;
  std::uint32_t symbols = 0;
  std::uint32_t samples = 0;
  std::uint32_t exception_list = 0;  ///< indices in C order
};

}  // namespace quern::kernels

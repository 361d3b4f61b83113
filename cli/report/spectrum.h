// Power spectra of original, reconstruction and error.
#pragma once

#include <complex>
#include <cstddef>
#include <string>
#include <vector>

#include "cli/report/pair_reader.h"

namespace quern::report {

/// Power against frequency in cycles per element (at most 1/2). Empty when the data is too small.
struct Spectra {
  std::vector<double> frequency;
  std::vector<double> original;
  std::vector<double> reconstructed;
  std::vector<double> error;
  std::string how;  ///< one sentence: what was averaged
};

/// Planes of at least 8 x 8: the plane in the middle of the leading axes, averaged over rings of equal frequency. Else
/// rows of at least 8: averaged over rows and segments along the fastest axis. The mean is taken out and a Hann window
/// put on; invalid elements count as the mean; at most 1024 elements an axis are taken at a time.
Spectra power_spectra(const PairReader& reader);

/// In place; the size is a power of two.
void fourier_transform(std::vector<std::complex<double>>& values);

}  // namespace quern::report

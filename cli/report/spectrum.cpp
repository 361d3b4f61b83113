// A radix-2 transform, a Hann window and averages over rings or rows.
#include "cli/report/spectrum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "cli/report/slices.h"

namespace quern::report {
namespace {

using Complex = std::complex<double>;

constexpr std::uint64_t kLeastElems = 8;
constexpr std::uint64_t kMaxPlaneSide = 1024;
constexpr std::uint64_t kMaxSegment = 1024;
constexpr std::uint64_t kMaxRows = 512;

enum Kind : std::size_t { kOriginal, kReconstructed, kError, kKinds };
using Fields = std::array<std::vector<double>, kKinds>;

/// Gaps and values that are not finite become the mean, then the mean is taken out. Returns the largest magnitude left.
double centre(std::vector<double>& values) {
  double mean = 0.0;
  double n = 0.0;
  for (const double value : values)
    if (std::isfinite(value)) {
      ++n;
      mean += value / n - mean / n;
    }
  double largest = 0.0;
  for (double& value : values) {
    value = std::isfinite(value) ? value - mean : 0.0;
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

double hann(std::uint64_t i, std::uint64_t n) {
  const double s = std::sin(std::numbers::pi * (static_cast<double>(i) + 0.5) / static_cast<double>(n));
  return s * s;
}

/// Adds up power by frequency bin.
class Bins {
 public:
  explicit Bins(std::uint64_t n) : sums_(n, 0.0), weights_(n, 0.0) {}
  void add(double frequency, double power) {
    const double place = frequency * 2 * static_cast<double>(sums_.size());
    const auto bin = static_cast<std::size_t>(std::llround(place));
    if (bin == 0 || bin > sums_.size()) return;
    sums_[bin - 1] += power;
    ++weights_[bin - 1];
  }
  std::vector<double> means() const {
    std::vector<double> out;
    for (std::size_t i = 0; i < sums_.size(); ++i) out.push_back(weights_[i] == 0 ? 0.0 : sums_[i] / weights_[i]);
    return out;
  }

 private:
  std::vector<double> sums_;
  std::vector<double> weights_;
};

std::vector<double> bin_frequencies(std::uint64_t n) {
  std::vector<double> out;
  for (std::uint64_t i = 1; i <= n; ++i) out.push_back(static_cast<double>(i) / static_cast<double>(2 * n));
  return out;
}

double signed_frequency(std::uint64_t i, std::uint64_t n) {
  const auto place = static_cast<double>(i);
  return (i <= n / 2 ? place : place - static_cast<double>(n)) / static_cast<double>(n);
}

/// The part of a plane that is transformed.
struct Window {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t padded_rows = 0;
  std::uint64_t padded_columns = 0;
};

/// Power by frequency of one windowed plane, normalised by the window's energy.
std::vector<double> plane_spectrum(std::vector<double>& values, const Window& window, std::uint64_t bins) {
  const double unit = centre(values);
  Bins sums(bins);
  if (unit == 0) return sums.means();
  std::vector<Complex> padded(window.padded_rows * window.padded_columns);
  double energy = 0.0;
  for (std::uint64_t r = 0; r < window.rows; ++r)
    for (std::uint64_t c = 0; c < window.columns; ++c) {
      const double weight = hann(r, window.rows) * hann(c, window.columns);
      energy += weight * weight;
      padded[r * window.padded_columns + c] = values[r * window.columns + c] / unit * weight;
    }
  std::vector<Complex> line(window.padded_columns);
  for (std::uint64_t r = 0; r < window.rows; ++r) {
    const auto first = padded.begin() + static_cast<std::ptrdiff_t>(r * window.padded_columns);
    std::copy_n(first, window.padded_columns, line.begin());
    fourier_transform(line);
    std::copy(line.begin(), line.end(), first);
  }
  line.resize(window.padded_rows);
  for (std::uint64_t c = 0; c <= window.padded_columns / 2; ++c) {
    for (std::uint64_t r = 0; r < window.padded_rows; ++r) line[r] = padded[r * window.padded_columns + c];
    fourier_transform(line);
    for (std::uint64_t r = 0; r < window.padded_rows; ++r) {
      const double frequency =
          std::hypot(signed_frequency(r, window.padded_rows), signed_frequency(c, window.padded_columns));
      sums.add(frequency, std::norm(line[r]) / energy * unit * unit);
    }
  }
  return sums.means();
}

Spectra plane_spectra(const PairReader& reader, const Plane& plane) {
  Window window;
  window.rows = std::min(plane.rows, kMaxPlaneSide);
  window.columns = std::min(plane.columns, kMaxPlaneSide);
  window.padded_rows = std::bit_ceil(window.rows);
  window.padded_columns = std::bit_ceil(window.columns);
  const std::uint64_t first_row = (plane.rows - window.rows) / 2;
  const std::uint64_t first_column = (plane.columns - window.columns) / 2;
  Fields fields;
  PairRun run;
  for (std::uint64_t r = 0; r < window.rows; ++r) {
    reader.read(plane.first + (first_row + r) * plane.columns + first_column, window.columns, 1, run);
    for (std::size_t i = 0; i < run.original.size(); ++i)
      if (std::isnan(run.original[i])) run.reconstructed[i] = run.original[i];
    fields[kOriginal].insert(fields[kOriginal].end(), run.original.begin(), run.original.end());
    fields[kReconstructed].insert(fields[kReconstructed].end(), run.reconstructed.begin(), run.reconstructed.end());
    fields[kError].insert(fields[kError].end(), run.error.begin(), run.error.end());
  }
  const std::uint64_t bins = std::max<std::uint64_t>(4, std::min(window.rows, window.columns) / 2);
  Spectra spectra;
  spectra.frequency = bin_frequencies(bins);
  spectra.original = plane_spectrum(fields[kOriginal], window, bins);
  spectra.reconstructed = plane_spectrum(fields[kReconstructed], window, bins);
  spectra.error = plane_spectrum(fields[kError], window, bins);
  spectra.how = "Plane " + plane.where + ", averaged over rings of equal frequency.";
  return spectra;
}

void add_segment(std::vector<double> values, Bins& bins) {
  const std::uint64_t n = values.size();
  const double unit = centre(values);
  if (unit == 0) return bins.add(0.5, 0.0);
  std::vector<Complex> padded(std::bit_ceil(n));
  double energy = 0.0;
  for (std::uint64_t i = 0; i < n; ++i) {
    energy += hann(i, n) * hann(i, n);
    padded[i] = values[i] / unit * hann(i, n);
  }
  fourier_transform(padded);
  for (std::uint64_t i = 1; i <= padded.size() / 2; ++i)
    bins.add(signed_frequency(i, padded.size()), std::norm(padded[i]) / energy * unit * unit);
}

/// Rows, or segments of a long row with half an overlap, evenly picked when there are many.
Spectra row_spectra(const PairReader& reader, std::uint64_t row) {
  const std::uint64_t segment = std::min(row, kMaxSegment);
  const std::uint64_t hop = std::max<std::uint64_t>(1, segment / 2);
  const std::uint64_t per_row = (row - segment) / hop + 1;
  const std::uint64_t segments = reader.shape().elems() / row * per_row;
  const std::uint64_t used = std::min(segments, kMaxRows);
  const std::uint64_t bins = segment / 2;
  std::array<Bins, kKinds> sums{Bins(bins), Bins(bins), Bins(bins)};
  PairRun run;
  for (std::uint64_t i = 0; i < used; ++i) {
    const std::uint64_t pick = i * segments / used;
    reader.read(pick / per_row * row + pick % per_row * hop, segment, 1, run);
    for (std::size_t j = 0; j < run.original.size(); ++j)
      if (std::isnan(run.original[j])) run.reconstructed[j] = run.original[j];
    add_segment(run.original, sums[kOriginal]);
    add_segment(run.reconstructed, sums[kReconstructed]);
    add_segment(run.error, sums[kError]);
  }
  Spectra spectra;
  spectra.frequency = bin_frequencies(bins);
  spectra.original = sums[kOriginal].means();
  spectra.reconstructed = sums[kReconstructed].means();
  spectra.error = sums[kError].means();
  spectra.how = "Along the fastest axis, mean of " + std::to_string(used) + " segments of " + std::to_string(segment) +
                " elements.";
  return spectra;
}

}  // namespace

void fourier_transform(std::vector<Complex>& values) {
  const std::size_t n = values.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(values[i], values[j]);
  }
  for (std::size_t half = 1; half < n; half *= 2) {
    std::vector<Complex> roots(half);
    for (std::size_t k = 0; k < half; ++k)
      roots[k] = std::polar(1.0, -std::numbers::pi * static_cast<double>(k) / static_cast<double>(half));
    for (std::size_t start = 0; start < n; start += 2 * half)
      for (std::size_t k = 0; k < half; ++k) {
        const Complex a = values[start + k];
        const Complex b = values[start + k + half];
        // Written out: std::complex products check for infinities.
        const Complex turned(b.real() * roots[k].real() - b.imag() * roots[k].imag(),
                             b.real() * roots[k].imag() + b.imag() * roots[k].real());
        values[start + k] = a + turned;
        values[start + k + half] = a - turned;
      }
  }
}

Spectra power_spectra(const PairReader& reader) {
  const Shape& shape = reader.shape();
  if (shape.rank() == 0 || shape.elems() == 0) return {};
  const std::vector<Plane> planes = choose_planes(shape);
  if (!planes.empty()) {
    const Plane& middle = planes[planes.size() / 2];
    if (middle.rows >= kLeastElems && middle.columns >= kLeastElems) return plane_spectra(reader, middle);
  }
  const std::uint64_t row = shape[shape.rank() - 1];
  if (row < kLeastElems) return {};
  return row_spectra(reader, row);
}

}  // namespace quern::report

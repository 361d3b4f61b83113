#include "codecs/stencil/lattice/lattice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "codecs/stencil/elements.h"

namespace quern::codec::stencil {

namespace {

/// A number that is known to some error.
struct Uncertain {
  double value = 0;
  double error = 0;

  /// Too vague to say of what it is a multiple.
  bool vague(double spacing) const { return error > spacing * 0.375; }
};

/// What is left of `a` beyond the nearest multiple of `b`.
Uncertain rest_of(const Uncertain& a, const Uncertain& b) {
  const double count = nearest(a.value / b.value);
  return {std::fabs(a.value - count * b.value), a.error + count * b.error};
}

/// Largest number of which both are multiples, by Euclid's algorithm.
Uncertain common_divisor(Uncertain a, Uncertain b, double least) {
  while (b.value >= least && !b.vague(b.value)) {
    const Uncertain rest = rest_of(a, b);
    a = b;
    b = rest;
    if (rest.value <= rest.error) return a;
  }
  return b;
}

/// The spacing that all distances are multiples of, each but for `noise`; less than `least` when there is none. Goes
/// through them from the shortest on: the more spacings a distance has, the better it tells what one is, and the
/// further away the next may be.
Uncertain common_spacing(std::span<const double> sorted, double least, double noise) {
  Uncertain spacing;
  for (bool again = true; again;) {
    again = false;
    double most = 0;
    for (const double distance : sorted) {
      if (distance <= noise) continue;
      if (spacing.value == 0) spacing = {distance, noise};
      const Uncertain rest = rest_of({distance, noise}, spacing);
      if (spacing.value < least || rest.vague(spacing.value)) return spacing;
      if (rest.value > rest.error) {
        spacing = common_divisor(spacing, rest, least);
        again = true;
        break;
      }
      const double count = nearest(distance / spacing.value);
      if (count <= most) continue;
      most = count;
      if (noise / count < spacing.error) spacing = {distance / count, noise / count};
    }
  }
  return spacing;
}

/// The number of the fewest decimal places that is within `uncertain` of v > 0; v if it has more than a few.
double rounded_decimal(double v, double uncertain) {
  double scale = 1;
  for (int places = 0; places <= 12; ++places, scale *= 10) {
    const double scaled = v * scale;
    if (!(std::fabs(scaled) < 0x1p50)) break;
    const double decimal = nearest(scaled) / scale;
    if (decimal > 0 && std::fabs(decimal - v) <= uncertain) return decimal;
  }
  return v;
}

}  // namespace

bool may_have_lattice(std::span<double> distances, double least, double noise) {
  std::sort(distances.begin(), distances.end());
  return common_spacing(distances, least, noise).value >= least;
}

std::optional<Lattice> find_lattice(std::span<const double> numbers, std::span<double> distances, double least,
                                    double noise) {
  if (numbers.empty()) return std::nullopt;
  std::sort(distances.begin(), distances.end());
  const double rough = common_spacing(distances, least, noise).value;
  if (!(rough >= least)) return std::nullopt;

  // The line through places and numbers, both counted from the first, which keeps the sums accurate.
  const double first = numbers[0];
  double sum_n = 0;
  double sum_x = 0;
  double low = 0;
  double high = 0;
  for (const double x : numbers) {
    const double n = nearest((x - first) / rough);
    sum_n += n;
    sum_x += x - first;
    low = std::min(low, n);
    high = std::max(high, n);
  }
  if (!(high > low) || !(high - low < kMostPlaces)) return std::nullopt;
  const double count = static_cast<double>(numbers.size());
  const double mean_n = sum_n / count;
  const double mean_x = sum_x / count;
  double square = 0;
  double product = 0;
  for (const double x : numbers) {
    const double n = nearest((x - first) / rough) - mean_n;
    square += n * n;
    product += n * (x - first - mean_x);
  }
  Lattice lattice;
  lattice.spacing = rounded_decimal(product / square, noise / (high - low));
  // Where the lattice has a place at 0, that is its origin.
  const double origin = first + (mean_x - mean_n * lattice.spacing);
  const double from_zero = nearest(origin / lattice.spacing);
  const bool at_zero =
      std::fabs(from_zero) + high - low < kMostPlaces && std::fabs(origin - from_zero * lattice.spacing) <= noise;
  lattice.origin = at_zero ? 0 : origin;
  for (const double x : numbers) {
    const double n = nearest((x - lattice.origin) / lattice.spacing);
    if (std::fabs(x - (n * lattice.spacing + lattice.origin)) > 2 * noise) return std::nullopt;
  }
  return lattice;
}

std::optional<Lattice> find_binary_lattice(std::span<const double> numbers, double least) {
  constexpr int kFractionBits = 52;
  constexpr int kBias = 1023;
  int lowest = 2048;
  double low = 0;
  double high = 0;
  for (const double x : numbers) {
    low = std::min(low, x);
    high = std::max(high, x);
    if (x == 0) continue;
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto exponent = static_cast<int>(bits >> kFractionBits & 0x7FF);
    if (exponent == 0) return std::nullopt;
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << kFractionBits) - 1);
    const int zeros = fraction == 0 ? kFractionBits : std::countr_zero(fraction);
    lowest = std::min(lowest, exponent - kBias - kFractionBits + zeros);
  }
  if (lowest == 2048) return std::nullopt;
  const double spacing = std::ldexp(1.0, lowest);
  if (!(spacing >= least) || !(std::max(high, -low) / spacing < kMostPlaces)) return std::nullopt;
  return Lattice{0, spacing};
}

}  // namespace quern::codec::stencil

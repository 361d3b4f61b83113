// Finds out whether numbers lie on a lattice: origin + n * spacing. Stored fields often do: counts, decimal digits,
// packed integers multiplied out, sensors of few bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace quern::codec::stencil {

struct Lattice {
  double origin = 0;
  double spacing = 1;

  /// Product and sum rounded separately, as decoders do.
  double value(std::int32_t n) const {
    const double product = static_cast<double>(n) * spacing;
    return product + origin;
  }
};

/// Places are this near to 0, so that what encoders add to them stays within 32 bits.
constexpr double kMostPlaces = 0x1p30;

/// False when no spacing of at least `least` has all distances as multiples but for `noise`. They are left sorted.
bool may_have_lattice(std::span<double> distances, double least, double noise);

/// A lattice of at least `least` spacing to which all `numbers` belong but for about `noise`; none if they seem to be
/// anywhere. `distances` are some between numbers, short ones among them; they are left sorted, which is what takes
/// time. `least` is well above `noise`.
std::optional<Lattice> find_lattice(std::span<const double> numbers, std::span<double> distances, double least,
                                    double noise);

/// The same for numbers that are multiples of one power of two, whatever their rounding was.
std::optional<Lattice> find_binary_lattice(std::span<const double> numbers, double least);

}  // namespace quern::codec::stencil

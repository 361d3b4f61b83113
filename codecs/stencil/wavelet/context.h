// What the context of a wavelet coefficient, or of a correction after the transform, is made of: magnitudes of codes
// around it that the decoder has.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/wavelet/axes.h"
#include "kernels/stencil/cpu/stencil.h"

namespace quern::codec::stencil {

enum WaveletFeature : std::size_t {
  kWest = 0,            ///< the coefficient before in the row
  kWestOfWest = 1,      ///< and before that
  kAbove = 2,           ///< row before
  kAboveSides = 3,      ///< row before, columns before and after
  kAboveFar = 4,        ///< two rows before; row before, two columns before and after
  kBack = 5,            ///< plane before
  kBackSides = 6,       ///< plane before: rows and columns before and after
  kBackFar = 7,         ///< two planes before
  kVolume = 8,          ///< volume before
  kParent = 9,          ///< same band at the next coarser level
  kParentSides = 10,    ///< there, before and after along each axis
  kSiblings = 11,       ///< bands of the level coded before
  kSiblingsSides = 12,  ///< there, before and after along each axis
  kPacketParent = 13,   ///< same band in the packet before, along each packet axis
  kPacketSides = 14,    ///< there, before and after along each axis
  kWaveletFeatures = 15,
};
inline constexpr std::size_t kNearFeatures = 2;  ///< those of the row itself

inline constexpr unsigned kWaveletContextBits = 12;  ///< fraction bits of weights
inline constexpr std::uint32_t kMaxWaveletWeight = (1u << 13) - 1;

using WaveletWeights = std::array<std::uint16_t, kWaveletFeatures>;

/// A row of magnitudes as seen from the row of a context.
struct MagnitudeRow {
  const std::uint32_t* row = nullptr;
  std::size_t count = 0;      ///< of its columns; others are 0
  std::ptrdiff_t offset = 0;  ///< column x looks at (x >> halved) + offset
  unsigned halved = 0;
};

/// Calls visit(feature, MagnitudeRow) for all that a row of a band looks at, but the row itself. `magnitudes` lies as
/// the coefficients do.
template <class Visit>
void for_sources(const WaveletAxes& axes, const WaveletBand& band, const AxisValues& index,
                 const std::uint32_t* magnitudes, const Visit& visit);

/// The same for corrections: `magnitudes` has those of corrections, one for each element, `coefficients` those of the
/// coefficients.
template <class Visit>
void for_correction_sources(const WaveletAxes& axes, const AxisValues& index, const std::uint32_t* magnitudes,
                            const std::uint32_t* coefficients, const Visit& visit);

namespace detail {

/// Reads one band around an index that may lie outside.
struct BandReader {
  const WaveletAxes& axes;
  const WaveletBand& band;
  const std::uint32_t* magnitudes;
  AxisValues strides;
  std::size_t first;  ///< place of the band's first coefficient

  BandReader(const WaveletAxes& of, const WaveletBand& read, const std::uint32_t* all)
      : axes(of), band(read), magnitudes(all), strides(of.strides()), first(0) {
    for (std::size_t a = 0; a < axes.rank; ++a) first += band.start[a] * strides[a];
  }

  /// The row at `index` moved by `by` along `axis` (rank: not at all). Along the last axis the columns move.
  template <class Visit>
  void at(std::size_t feature, const AxisValues& index, unsigned halved, std::size_t axis, std::ptrdiff_t by,
          const Visit& visit) const {
    const std::size_t last = axes.rank - 1;
    std::size_t place = first;
    for (std::size_t a = 0; a < last; ++a) {
      const std::size_t i = index[a] + (a == axis ? static_cast<std::size_t>(by) : 0);
      if (i >= band.extents[a]) return;
      place += i * strides[a];
    }
    visit(feature, MagnitudeRow{magnitudes + place, band.columns(), axis == last ? by : 0, halved});
  }
  /// It and those before and after along each axis.
  template <class Visit>
  void around(std::size_t feature, const AxisValues& index, unsigned halved, const Visit& visit) const {
    at(feature, index, halved, axes.rank, 0, visit);
    for (std::size_t a = 0; a < axes.rank; ++a)
      for (const std::ptrdiff_t by : {-1, 1}) at(feature + 1, index, halved, a, by, visit);
  }
};

/// Rows, planes and volumes before.
template <class Visit>
void for_own_sources(const BandReader& reader, const AxisValues& index, const Visit& visit) {
  const std::size_t rank = reader.axes.rank;
  const std::size_t last = rank - 1;
  const auto row = [&](std::size_t feature, std::ptrdiff_t planes, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    AxisValues place = index;
    place[last - 1] = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(place[last - 1]) + rows);
    if (planes != 0) place[last - 2] = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(place[last - 2]) + planes);
    reader.at(feature, place, 0, last, columns, visit);
  };
  if (rank < 2) return;
  row(kAbove, 0, -1, 0);
  row(kAboveSides, 0, -1, -1);
  row(kAboveSides, 0, -1, 1);
  row(kAboveFar, 0, -2, 0);
  row(kAboveFar, 0, -1, -2);
  row(kAboveFar, 0, -1, 2);
  if (rank < 3) return;
  row(kBack, -1, 0, 0);
  for (const std::ptrdiff_t by : {-1, 1}) {
    row(kBackSides, -1, by, 0);
    row(kBackSides, -1, 0, by);
  }
  row(kBackFar, -2, 0, 0);
  if (rank < 4) return;
  reader.at(kVolume, index, 0, 0, -1, visit);
}

inline AxisValues shifted(const AxisValues& index, const WaveletAxes& axes, std::size_t mask) {
  AxisValues result = index;
  for (std::size_t a = 0; a < axes.rank; ++a) result[a] >>= mask >> (axes.rank - 1 - a) & 1;
  return result;
}

}  // namespace detail

template <class Visit>
void for_sources(const WaveletAxes& axes, const WaveletBand& band, const AxisValues& index,
                 const std::uint32_t* magnitudes, const Visit& visit) {
  detail::for_own_sources(detail::BandReader(axes, band, magnitudes), index, visit);
  const unsigned depth = axes.depth();
  if (band.high != 0 && band.level + 1 < depth) {
    const std::size_t split = axes.split(band.level + 1);
    if ((band.high & split) != 0) {
      const WaveletBand parent(axes, band.packet, band.level + 1, band.high & split);
      detail::BandReader(axes, parent, magnitudes)
          .around(kParent, detail::shifted(index, axes, split), static_cast<unsigned>(split & 1), visit);
    }
  }
  if (band.high != 0) {
    const std::size_t split = axes.split(band.level);
    for (const std::uint8_t c : kClassOrder) {
      if (c == band.high) break;
      if (c == 0 || (c & ~split) != 0) continue;
      const WaveletBand sibling(axes, band.packet, band.level, c);
      detail::BandReader(axes, sibling, magnitudes).around(kSiblings, index, 0, visit);
    }
  }
  for (std::size_t a = 0; a < axes.packets; ++a) {
    if (band.packet[a] == 0) continue;
    auto packet = band.packet;
    --packet[a];
    const WaveletBand before(axes, packet, band.level, band.high);
    AxisValues place = index;
    if (packet[a] > 0) place[a] >>= 1;
    detail::BandReader(axes, before, magnitudes).around(kPacketParent, place, 0, visit);
  }
}

template <class Visit>
void for_correction_sources(const WaveletAxes& axes, const AxisValues& index, const std::uint32_t* magnitudes,
                            const std::uint32_t* coefficients, const Visit& visit) {
  WaveletAxes plain;  // corrections are one band
  plain.rank = axes.rank;
  plain.extents = axes.extents;
  const WaveletBand whole(plain, {}, 0, 0);
  detail::for_own_sources(detail::BandReader(plain, whole, magnitudes), index, visit);
  // The finest coefficients tell where the field is rough.
  std::array<unsigned, kMaxAxes> packet{};
  AxisValues place = index;
  for (std::size_t a = 0; a < axes.packets; ++a) {
    packet[a] = axes.levels[a];
    if (packet[a] > 0) place[a] >>= 1;
  }
  const std::size_t split = axes.split(0);
  place = detail::shifted(place, axes, split);
  for (std::size_t c = split == 0 ? 0 : 1; c < kParityClasses; ++c) {
    if ((c & ~split) != 0) continue;
    const WaveletBand band(axes, packet, 0, c);
    detail::BandReader(axes, band, coefficients).around(kParent, place, static_cast<unsigned>(split & 1), visit);
    if (split == 0) break;
  }
}

/// sums[x] += weight * what the row shows at column x, for `columns` columns.
inline void add_row(const MagnitudeRow& source, std::uint32_t weight, std::size_t columns,
                    const kernels::StencilKernels& kernels, std::uint32_t* sums) {
  const std::ptrdiff_t seen = static_cast<std::ptrdiff_t>(source.halved != 0 ? (columns + 1) / 2 : columns);
  const std::ptrdiff_t begin = std::max<std::ptrdiff_t>(source.offset, 0);
  const std::ptrdiff_t end = std::min(static_cast<std::ptrdiff_t>(source.count), seen + source.offset);
  const std::ptrdiff_t whole = static_cast<std::ptrdiff_t>(columns / 2) + source.offset;
  const std::ptrdiff_t stop = source.halved != 0 ? std::min(end, whole) : end;
  if (begin < stop)
    kernels.decode.add_row(source.row + begin, weight, static_cast<std::size_t>(stop - begin), source.halved != 0,
                           sums + ((begin - source.offset) << source.halved));
  if (source.halved != 0 && whole >= begin && whole < end) sums[columns - 1] += weight * source.row[whole];
}

}  // namespace quern::codec::stencil

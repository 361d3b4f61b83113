// The axes of a chunk under the wavelet transform, and the bands that its coefficients lie in. Arithmetic on extents
// only.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/levels/axes.h"
#include "codecs/stencil/levels/view.h"

namespace quern::codec::stencil {

inline constexpr unsigned kMaxWaveletLevels = 21;
inline constexpr std::size_t kMaxPackets = 2;

using AxisValues = std::array<std::size_t, kMaxAxes>;

/// How a chunk is transformed. The first `packets` axes are decomposed first, each completely and on its own; the
/// others then together: at each level all those that have such a level, then on to where all of them are low.
struct WaveletAxes {
  std::size_t rank = 1;
  AxisValues extents{1, 1, 1, 1};
  std::size_t packets = 0;                  ///< less than rank
  std::array<unsigned, kMaxAxes> levels{};  ///< of each axis

  std::size_t elems() const {
    std::size_t n = 1;
    for (const std::size_t e : extents) n *= e;
    return n;
  }
  /// Low coefficients along an axis after `level` levels.
  std::size_t points(std::size_t axis, unsigned level) const { return ((extents[axis] - 1) >> level) + 1; }
  /// Levels at which the axes behind the packets are taken together.
  unsigned depth() const {
    unsigned most = 0;
    for (std::size_t a = packets; a < rank; ++a) most = levels[a] > most ? levels[a] : most;
    return most;
  }
  /// Bands of all packet axes together.
  std::size_t packet_count() const {
    std::size_t n = 1;
    for (std::size_t a = 0; a < packets; ++a) n *= levels[a] + 1;
    return n;
  }
  /// Axes split at a level of the joint decomposition, as a mask with the last axis lowest.
  std::size_t split(unsigned level) const {
    std::size_t mask = 0;
    for (std::size_t a = packets; a < rank; ++a)
      if (levels[a] > level) mask |= std::size_t{1} << (rank - 1 - a);
    return mask;
  }
  AxisValues strides() const {
    AxisValues result{};
    std::size_t stride = 1;
    for (std::size_t a = rank; a-- > 0; stride *= extents[a]) result[a] = stride;
    return result;
  }
  /// Every level halves at least two coefficients.
  bool possible() const {
    if (packets >= rank || packets > kMaxPackets) return false;
    for (std::size_t a = 0; a < rank; ++a)
      if (levels[a] > 0 && (levels[a] > kMaxWaveletLevels || points(a, levels[a] - 1) < 2)) return false;
    return true;
  }
};

inline std::size_t longest_extent(const WaveletAxes& axes) {
  std::size_t longest = 1;
  for (const std::size_t e : axes.extents) longest = e > longest ? e : longest;
  return longest;
}

/// The axes of a box, without levels yet.
inline WaveletAxes wavelet_axes(const LevelsView& view) {
  WaveletAxes axes;
  axes.rank = view.axes.rank;
  axes.extents = view.axes.extents;
  return axes;
}

/// Coefficients that share a place in the decomposition: a box of the array of coefficients.
struct WaveletBand {
  std::array<unsigned, kMaxAxes> packet{};  ///< along each packet axis 0 for low, then details from coarse to fine
  unsigned level = 0;                       ///< of the joint decomposition, 0 the finest; depth() for all low
  std::size_t high = 0;                     ///< joint axes along which it is high, the last lowest; 0: all low
  AxisValues start{};
  AxisValues extents{1, 1, 1, 1};
  int gain = 0;           ///< times that low passes went into a coefficient minus times that high passes did
  std::size_t group = 0;  ///< of bands that share a constant in their contexts

  std::size_t rows() const { return extents[0] * extents[1] * extents[2] * extents[3] / columns_; }
  std::size_t columns() const { return columns_; }
  /// True when low values of a level, along all axes, are made of it.
  bool holds(const WaveletAxes& axes, unsigned at_level) const {
    for (std::size_t a = 0; a < axes.packets; ++a)
      if (packet[a] > 0 && axes.levels[a] - packet[a] < at_level) return false;
    return high == 0 || level >= at_level;
  }

  WaveletBand(const WaveletAxes& axes, const std::array<unsigned, kMaxAxes>& packets, unsigned at_level,
              std::size_t high_axes)
      : packet(packets), level(at_level), high(high_axes) {
    std::size_t number = 0;
    for (std::size_t a = 0; a < axes.rank; ++a) {
      unsigned low = 0;  // levels passed as the low part
      bool detail = false;
      if (a < axes.packets) {
        low = axes.levels[a] - (packet[a] > 0 ? packet[a] : 0);
        detail = packet[a] > 0;
        number = number * (axes.levels[a] + 1) + packet[a];
      } else {
        detail = (high >> (axes.rank - 1 - a) & 1) != 0;
        low = axes.levels[a] < level + 1 ? axes.levels[a] : level + 1;
        if (level == axes.depth()) low = axes.levels[a];
        if (detail) low = level;
      }
      if (detail) {
        start[a] = axes.points(a, low + 1);
        extents[a] = axes.points(a, low) - start[a];
      } else {
        extents[a] = axes.points(a, low);
      }
      gain += static_cast<int>(low) - (detail ? 1 : 0);
    }
    group = number * (axes.depth() + 1) + (axes.depth() - level);
    columns_ = extents[axes.rank - 1];
  }

 private:
  std::size_t columns_ = 1;
};

inline constexpr std::size_t kMaxWaveletGroups =
    (kMaxWaveletLevels + 1) * (kMaxWaveletLevels + 1) * (kMaxWaveletLevels + 1);
inline std::size_t wavelet_groups(const WaveletAxes& axes) { return axes.packet_count() * (axes.depth() + 1); }

/// Calls visit(band) in the order of coding, packets and levels from coarse to fine, until it returns false; false
/// then.
template <class Visit>
bool for_bands(const WaveletAxes& axes, const Visit& visit) {
  const std::size_t count = axes.packet_count();
  for (std::size_t n = 0; n < count; ++n) {
    std::array<unsigned, kMaxAxes> packet{};
    std::size_t rest = n;
    for (std::size_t a = axes.packets; a-- > 0; rest /= axes.levels[a] + 1)
      packet[a] = static_cast<unsigned>(rest % (axes.levels[a] + 1));
    const unsigned depth = axes.depth();
    if (!visit(WaveletBand(axes, packet, depth, 0))) return false;
    for (unsigned level = depth; level-- > 0;) {
      const std::size_t split = axes.split(level);
      for (const std::uint8_t c : kClassOrder)
        if (c != 0 && (c & ~split) == 0 && !visit(WaveletBand(axes, packet, level, c))) return false;
    }
  }
  return true;
}

/// The index of a row of a band: coordinates along all axes but the last, which is 0.
inline AxisValues band_row(const WaveletAxes& axes, const WaveletBand& band, std::size_t row) {
  AxisValues index{};
  for (std::size_t a = axes.rank - 1; a-- > 0; row /= band.extents[a]) index[a] = row % band.extents[a];
  return index;
}

/// Place in the array of coefficients of the first coefficient of a row.
inline std::size_t band_place(const WaveletAxes& axes, const WaveletBand& band, const AxisValues& index) {
  const AxisValues strides = axes.strides();
  std::size_t at = 0;
  for (std::size_t a = 0; a < axes.rank; ++a) at += (band.start[a] + index[a]) * strides[a];
  return at;
}

/// A row of the chunk along its last axis, and where it and its mask begin in memory.
struct ChunkRow {
  AxisValues index{};
  std::size_t at = 0;
  std::size_t special = 0;
};

/// Rows are counted in C order.
inline ChunkRow chunk_row(const WaveletAxes& axes, const LevelsView& view, std::size_t number) {
  ChunkRow row;
  for (std::size_t a = axes.rank - 1; a-- > 0; number /= axes.extents[a]) {
    row.index[a] = number % axes.extents[a];
    row.at += row.index[a] * view.strides[a];
    row.special += row.index[a] * view.special_strides[a];
  }
  return row;
}

}  // namespace quern::codec::stencil

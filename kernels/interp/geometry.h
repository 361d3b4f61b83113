// Tiles and levels of the interp codec: which points of a box each level has, and in which order they are coded. Axes
// are numbered slowest first. Points whose places are multiples of the tile's extents along all axes are anchors. Level
// L adds the points whose places are multiples of 2^L along the axes whose tiles are longer than that, and of the tile's
// extents along the others. Those it adds belong to classes: bit a of a class says that the place along axis a is an
// odd multiple of 2^L.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace quern::kernels {

inline constexpr unsigned kInterpMaxTileLog = 12;  ///< of one axis, and of all together
inline constexpr std::size_t kInterpClasses = 7;
/// A class sees only those before it.
inline constexpr std::array<std::uint8_t, kInterpClasses> kInterpClassOrder{4, 2, 1, 6, 5, 3, 7};

/// Logarithms of a tile's extents.
struct InterpTile {
  std::array<std::uint8_t, 3> logs{};

  constexpr unsigned levels() const {
    unsigned most = 0;
    for (const std::uint8_t log : logs) most = log > most ? log : most;
    return most;
  }
  /// The axes that a level halves, as the class of points that are odd along all of them.
  constexpr unsigned axes(unsigned level) const {
    unsigned axes = 0;
    for (std::size_t a = 0; a < 3; ++a) axes |= logs[a] > level ? 1u << a : 0u;
    return axes;
  }
  /// Logarithm of the distance of points along an axis once a level is there.
  constexpr unsigned step_log(unsigned level, std::size_t axis) const {
    return logs[axis] > level ? level : logs[axis];
  }
  /// Points along an axis of that extent (at least 1) once a level is there; level levels(): of anchors.
  constexpr std::size_t points(unsigned level, std::size_t axis, std::size_t extent) const {
    return ((extent - 1) >> step_log(level, axis)) + 1;
  }
  friend constexpr bool operator==(const InterpTile&, const InterpTile&) = default;
};

}  // namespace quern::kernels

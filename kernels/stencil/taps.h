// Where a stencil looks: taps of a raster-order stencil, neighbours that form contexts, classes of rows, and the
// geometry of the padded working planes. No arithmetic on values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/stencil/rules.h"

namespace quern::kernels {

/// Offset of an element already known: planes and rows back (or, in earlier planes, forth), columns. Plane kMeanPlane
/// stands for the running mean of all earlier planes.
struct Tap {
  std::int8_t plane = 0;
  std::int8_t row = 0;
  std::int8_t column = 0;
};

inline constexpr std::int8_t kMeanPlane = 1;
inline constexpr std::size_t kMeanMinPlanes = 8;  ///< chunks of fewer planes have no mean
inline constexpr std::size_t kMaxTaps = 40;
inline constexpr std::size_t kMaxNearTaps = 8;  ///< taps in the element's own row
inline constexpr std::size_t kMaxContextTaps = 16;
inline constexpr std::size_t kNearContextTaps = 2;   ///< in the element's own row; they come first
inline constexpr std::size_t kPlaneContextTaps = 7;  ///< of chunks of planes, in the element's own plane
inline constexpr std::size_t kHistoryPlanes = 3;

/// A chunk of planes x rows x columns. Arrays of two axes are planes of one row each, arrays of one axis one row.
enum class StencilShape : std::uint8_t { line, rows, planes };

/// Extents of a chunk after the rule above.
struct StencilExtents {
  std::size_t planes = 1;
  std::size_t rows = 1;
  std::size_t columns = 1;

  std::size_t elems() const { return planes * rows * columns; }
  StencilShape shape() const {
    return rows > 1 ? StencilShape::planes : planes > 1 ? StencilShape::rows : StencilShape::line;
  }
};

constexpr StencilExtents stencil_extents(const std::array<std::uint64_t, 3>& extents) {
  const auto size = [&](std::size_t a) { return static_cast<std::size_t>(extents[a]); };
  if (extents[0] == 1) return {size(1), 1, size(2)};
  return {size(0), size(1), size(2)};
}

constexpr std::size_t row_class(const StencilExtents& extents, std::size_t plane, std::size_t row) {
  return row_class(plane, row, extents.rows);
}

namespace detail {
inline constexpr std::array<Tap, 8> kLineTaps{{
    {0, 0, -1},
    {0, 0, -2},
    {0, 0, -3},
    {0, 0, -4},
    {0, 0, -5},
    {0, 0, -6},
    {0, 0, -7},
    {0, 0, -8},
}};
inline constexpr std::array<Tap, 16> kRowsTaps{{
    {0, 0, -1},
    {0, 0, -2},
    {0, 0, -3},
    {-1, 0, 0},
    {-1, 0, -1},
    {-1, 0, 1},
    {-1, 0, -2},
    {-1, 0, 2},
    {-1, 0, -3},
    {-1, 0, 3},
    {-2, 0, 0},
    {-2, 0, -1},
    {-2, 0, 1},
    {-2, 0, -2},
    {-2, 0, 2},
    {-3, 0, 0},
}};
inline constexpr std::array<Tap, 30> kPlanesTaps{{
    {0, 0, -1},   {0, 0, -2},  {0, 0, -3},  {0, -1, 0},  {0, -1, -1}, {0, -1, 1}, {0, -1, -2}, {0, -1, 2},
    {0, -2, 0},   {0, -2, -1}, {0, -2, 1},  {-1, 0, 0},  {-1, 0, -1}, {-1, 0, 1}, {-1, -1, 0}, {-1, 1, 0},
    {-1, -1, -1}, {-1, -1, 1}, {-1, 1, -1}, {-1, 1, 1},  {-1, 0, -2}, {-1, 0, 2}, {-1, -2, 0}, {-1, 2, 0},
    {-2, 0, 0},   {-2, 0, -1}, {-2, 0, 1},  {-2, -1, 0}, {-2, 1, 0},  {-3, 0, 0},
}};
inline constexpr std::array<Tap, 9> kMeanTaps{{
    {kMeanPlane, 0, 0},
    {kMeanPlane, 0, -1},
    {kMeanPlane, 0, 1},
    {kMeanPlane, -1, 0},
    {kMeanPlane, 1, 0},
    {kMeanPlane, -1, -1},
    {kMeanPlane, -1, 1},
    {kMeanPlane, 1, -1},
    {kMeanPlane, 1, 1},
}};
inline constexpr std::array<Tap, 2> kLineContext{{{0, 0, -1}, {0, 0, -2}}};
inline constexpr std::array<Tap, 9> kRowsContext{{
    {0, 0, -1},
    {0, 0, -2},
    {-1, 0, 0},
    {-1, 0, -1},
    {-1, 0, 1},
    {-1, 0, 2},
    {-1, 0, -2},
    {-2, 0, 0},
    {-3, 0, 0},
}};
inline constexpr std::array<Tap, 14> kPlanesContext{{
    {0, 0, -1},
    {0, 0, -2},
    {0, -1, 0},
    {0, -1, -1},
    {0, -1, 1},
    {0, -1, 2},
    {0, -2, 0},
    {-1, 0, 0},
    {-1, 0, 1},
    {-1, 0, -1},
    {-1, 1, 0},
    {-1, -1, 0},
    {-2, 0, 0},
    {-1, 1, 1},
}};
}  // namespace detail

/// All taps of a shape; those of the element's own row come first.
constexpr std::span<const Tap> all_taps(StencilShape shape) {
  if (shape == StencilShape::line) return detail::kLineTaps;
  if (shape == StencilShape::rows) return detail::kRowsTaps;
  return detail::kPlanesTaps;
}
/// Neighbours whose magnitudes form the context; the first kNearContextTaps lie in the element's own row.
constexpr std::span<const Tap> context_taps(StencilShape shape) {
  if (shape == StencilShape::line) return detail::kLineContext;
  if (shape == StencilShape::rows) return detail::kRowsContext;
  return detail::kPlanesContext;
}

/// True when rows of a class have that tap: no plane before the first, no row before the first.
constexpr bool tap_allowed(std::size_t row_class, const Tap& tap) {
  const std::size_t planes = row_class / 2;
  if (row_class % 2 == 0 && tap.row < 0) return false;
  if (tap.plane == kMeanPlane) return planes == 2;
  return planes == 2 || static_cast<std::size_t>(-tap.plane) <= planes;
}

struct TapList {
  std::array<Tap, kMaxTaps> taps{};
  std::size_t count = 0;
  std::size_t near = 0;  ///< of them, in the element's own row; they come first
};
/// The taps of a row class; those into the mean come last.
constexpr TapList taps_of(StencilShape shape, std::size_t row_class, bool with_mean) {
  TapList list;
  for (const Tap& tap : all_taps(shape)) {
    if (!tap_allowed(row_class, tap)) continue;
    list.taps[list.count++] = tap;
    if (tap.plane == 0 && tap.row == 0) ++list.near;
  }
  if (!with_mean) return list;
  for (const Tap& tap : detail::kMeanTaps) {
    if (tap_allowed(row_class, tap) && (shape == StencilShape::planes || tap.row == 0)) list.taps[list.count++] = tap;
  }
  return list;
}

/// Working planes with halos, so that no tap needs a test. All planes are kept, or the last ones in turn.
struct PlaneGeometry {
  static constexpr std::size_t kLeft = 8;
  static constexpr std::size_t kRight = 24;  ///< 3 for taps, the rest for reading in blocks past the end
  std::size_t halo_rows = 0;
  std::size_t stride = 0;  ///< elements from row to row
  std::size_t plane_elems = 0;
  std::size_t slots = 1;
  std::size_t slot_mask = 0;  ///< of a plane's number: its slot

  static constexpr PlaneGeometry make(const StencilExtents& extents, bool keep_all) {
    PlaneGeometry g;
    g.halo_rows = extents.rows > 1 ? 2 : 0;
    g.stride = (kLeft + extents.columns + kRight + 7) / 8 * 8;
    g.plane_elems = g.stride * (extents.rows + 2 * g.halo_rows);
    static_assert((kHistoryPlanes & (kHistoryPlanes + 1)) == 0);
    const bool all = keep_all || extents.planes <= kHistoryPlanes;
    g.slots = all ? extents.planes : kHistoryPlanes + 1;
    g.slot_mask = all ? SIZE_MAX : kHistoryPlanes;
    return g;
  }
  constexpr std::size_t elems() const { return plane_elems * slots; }
  /// First element of a row; planes before the first are the first, rows may lie in the halo.
  constexpr std::size_t row_at(std::ptrdiff_t plane, std::ptrdiff_t row) const {
    const std::size_t slot = plane < 0 ? 0 : static_cast<std::size_t>(plane) & slot_mask;
    return slot * plane_elems + static_cast<std::size_t>(row + static_cast<std::ptrdiff_t>(halo_rows)) * stride + kLeft;
  }
};

}  // namespace quern::kernels

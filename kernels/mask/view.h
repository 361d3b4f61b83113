// In which rows and planes the cells of a segment's mask are coded: those of its box, or others that come from the
// array's own axes (docs/format-mask.md, section 9). Host and device code use it alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/mask/segment.h"

namespace quern::kernels {

/// Cells of a segment in C order, cut into rows of `cols` and planes of `rows` rows; the last plane may have fewer.
struct MaskPlanes {
  std::uint64_t cells = 0;
  std::uint64_t rows = 1;
  std::uint64_t cols = 1;

  constexpr MaskPlanes() = default;
  constexpr MaskPlanes(std::uint64_t all, std::uint64_t r, std::uint64_t c) : cells(all), rows(r), cols(c) {}
  /// Those of a box.
  constexpr explicit MaskPlanes(const SegmentExtents& e) : cells(e[0] * e[1] * e[2]), rows(e[1]), cols(e[2]) {}

  constexpr std::uint64_t plane_cells() const { return rows * cols; }
  constexpr std::uint64_t count() const { return (cells + plane_cells() - 1) / plane_cells(); }
  constexpr std::uint64_t rows_of(std::uint64_t plane) const {
    return std::min(rows, (cells - plane * plane_cells()) / cols);
  }
  friend constexpr bool operator==(const MaskPlanes&, const MaskPlanes&) = default;
};

/// Rows and columns of planes.
struct MaskView {
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
};

/// The fewest rows and columns of the planes of a view: they bound what planes need of memory.
inline constexpr std::uint64_t kLeastViewExtent = 8;

/// Whether cells in C order can be seen so; rows of the box are cut whole. `own`: planes of the box, which is no view.
constexpr bool is_view_of(const MaskView& view, const MaskPlanes& own) {
  return view.cols >= kLeastViewExtent && view.rows >= kLeastViewExtent && own.cols % view.cols == 0 &&
         view.rows <= own.cells / view.cols && (view.rows != own.rows || view.cols != own.cols);
}

/// And by masks that are coded by levels: their planes may have one row, which suits masks whose rows repeat.
constexpr bool is_level_view_of(const MaskView& view, const MaskPlanes& own) {
  return view.cols >= kLeastViewExtent && view.rows >= 1 && own.cols % view.cols == 0 &&
         view.rows <= own.cells / view.cols && (view.rows != own.rows || view.cols != own.cols);
}
/// Planes of any of them, or of a box whose own planes are so many.
constexpr std::uint64_t most_level_planes(const MaskPlanes& own) {
  return std::max(own.count(), own.cells / kLeastViewExtent + 1);
}

/// Blocks of a plane of such a view, and columns of blocks, at most: blocks have 8 x 8 cells, those at the ends fewer.
constexpr std::uint64_t most_view_blocks(std::uint64_t cells) { return cells / 16 + 1; }
constexpr std::uint64_t most_view_columns(std::uint64_t cells) { return cells / 64 + 1; }
/// And planes, the last of which may have fewer cells than the others.
constexpr std::uint64_t most_view_planes(std::uint64_t cells) { return cells / 64 + 1; }

/// Elements of an array whose masks are worth a view.
inline constexpr std::uint64_t kLeastViewElems = UINT64_C(1) << 14;

/// The views that an array's own axes offer to the masks of its segments.
struct MaskViews {
  static constexpr std::size_t kMaxAxes = 8;
  static constexpr std::size_t kMost = kMaxAxes * (kMaxAxes - 1) / 2;
  MaskView list[kMost]{};
  std::uint32_t count = 0;

  constexpr MaskViews() = default;
  constexpr MaskViews(std::span<const std::uint64_t> shape, const SegmentExtents& grid) { set(shape, grid); }

  /// Those of an array of that shape whose grid has merged axes; none where no axis with more than one place is merged,
  /// or elements are few. Rows are the last axes from one on; planes are the axes before it from one on.
  constexpr void set(std::span<const std::uint64_t> shape, const SegmentExtents& grid) {
    count = 0;
    if (shape.size() > kMaxAxes || !is_merged(shape, grid) || grid[0] * grid[1] * grid[2] < kLeastViewElems) return;
    std::uint64_t cols = 1;
    for (std::size_t k = shape.size(); k-- > 1;) {
      cols *= shape[k];
      if (shape[k] == 1) continue;
      if (cols > grid[2]) return;
      std::uint64_t rows = 1;
      for (std::size_t j = k; j-- > 0;) {
        rows *= shape[j];
        if (shape[j] != 1 && rows >= kLeastViewExtent && cols >= kLeastViewExtent) list[count++] = {rows, cols};
      }
    }
  }

  constexpr std::span<const MaskView> all() const { return {list, count}; }

 private:
  static constexpr bool is_merged(std::span<const std::uint64_t> shape, const SegmentExtents& grid) {
    const auto long_axes = [](std::span<const std::uint64_t> extents) {
      unsigned count = 0;
      for (const std::uint64_t n : extents) count += n != 1 ? 1 : 0;
      return count;
    };
    return long_axes(shape) > long_axes(grid);
  }
};

/// The plane that plane i > 0 refers to.
[[gnu::always_inline]] constexpr std::uint64_t reference_plane(std::uint64_t i, std::uint64_t distance) {
  return i - (i >= distance ? distance : 1);
}

/// What is wrong with the bytes of a mask.
enum class MaskDamage : std::uint32_t {
  none = 0,
  corrupt = 1,    ///< no encoder writes them
  truncated = 2,  ///< they end too early
  trailing = 3,   ///< they end too late
};

/// First byte of a mask with a view. No byte from here on begins one without: it would announce 31 special values.
inline constexpr std::uint8_t kViewMark = 0xF8;

/// First byte, behind a view, of a mask that is coded by levels (docs/format-mask.md, section 10).
inline constexpr std::uint8_t kLevelMark = 0xF9;

/// Bytes of the mark and two numbers at most.
inline constexpr std::size_t kMostViewBytes = 1 + 2 * 10;

/// Writes the mark, in how many rows one of the box is cut, and rows of a plane through put(byte).
template <class Put>
constexpr void put_view(const MaskPlanes& planes, const MaskPlanes& own, Put&& put) {
  put(kViewMark);
  for (std::uint64_t value : {own.cols / planes.cols, planes.rows}) {
    for (; value >= 0x80; value >>= 7) put(static_cast<std::uint8_t>(value | 0x80));
    put(static_cast<std::uint8_t>(value));
  }
}

/// In which planes a stored mask is coded, and how many of its bytes say so.
struct StoredView {
  MaskPlanes planes;
  std::uint64_t bytes = 0;
  MaskDamage damage = MaskDamage::none;
  bool by_levels = false;  ///< only where the stream may hold masks that are coded by levels
};

/// Reads the view of any bytes. `own`: planes of the box, which has a cell. `may_be_levels`: the stream says so.
constexpr StoredView read_view(const std::uint8_t* in, std::uint64_t bytes, const MaskPlanes& own,
                               bool may_be_levels = false) {
  StoredView view;
  view.planes = own;
  if (bytes == 0 || in[0] < kViewMark) return view;
  view.by_levels = may_be_levels && in[0] == kLevelMark;
  if (view.by_levels) return view;
  view.damage = MaskDamage::corrupt;
  if (in[0] != kViewMark) return view;
  std::uint64_t at = 1;
  std::uint64_t numbers[2]{};
  for (std::uint64_t& number : numbers) {
    for (unsigned shift = 0;; shift += 7) {
      if (at == bytes) {
        view.damage = MaskDamage::truncated;
        return view;
      }
      const std::uint8_t byte = in[at++];
      number |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        if (byte == 0 && shift > 0) return view;  // not the fewest bytes
        break;
      }
      if (shift == 42) return view;  // a segment has fewer cells
    }
  }
  if (numbers[0] == 0 || own.cols % numbers[0] != 0) return view;
  const MaskView seen{numbers[1], own.cols / numbers[0]};
  const bool more = at < bytes;
  view.by_levels = may_be_levels && more && in[at] == kLevelMark;
  if (view.by_levels ? !is_level_view_of(seen, own) : !is_view_of(seen, own)) return view;
  if (!more) {
    view.damage = MaskDamage::truncated;
    return view;
  }
  view.planes = {own.cells, seen.rows, seen.cols};
  view.bytes = at;
  view.damage = MaskDamage::none;
  return view;
}

}  // namespace quern::kernels

// Which of the views of a mask its encoders choose: the one whose cells surprise least, counted on bits, 64 cells at a
// time. Over a loader of words, for one thread and for lanes alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernels/common/bits.h"
#include "kernels/mask/view.h"

namespace quern::kernels {

/// Share of 64 bits from `at` on in the hash of a plane, which is the sum of them: eight cells, or the bits of 64 ones,
/// little-endian, zeros after the last cell. Encoders take planes of the same hash for equal.
[[gnu::always_inline]] constexpr std::uint64_t hashed_cells(std::uint64_t cells, std::uint64_t at) {
  constexpr std::uint64_t kFactor = UINT64_C(0xD6E8FEB86659FD93);
  std::uint64_t x = (cells + at * UINT64_C(0x9E3779B97F4A7C15)) * kFactor;
  x ^= x >> 32;
  return x * kFactor;
}

/// Bit k: byte k of a word is not 0.
[[gnu::always_inline]] constexpr std::uint64_t bytes_with_bits(std::uint64_t bytes) {
  constexpr std::uint64_t kLow = UINT64_C(0x7F7F7F7F7F7F7F7F);
  const std::uint64_t high = (((bytes & kLow) + kLow) | bytes) & ~kLow;
  return (high >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

/// Byte k: bit k of the lowest eight.
[[gnu::always_inline]] constexpr std::uint64_t spread_to_bytes(std::uint64_t bits) {
  const std::uint64_t each = (bits & 0xFF) * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
  return (each + UINT64_C(0x7F7F7F7F7F7F7F7F)) >> 7 & UINT64_C(0x0101010101010101);
}

/// Bits that say which cells are masked, 64 a word, as windows at any place see them.
/// `Load(k)` gives word k; one word of zeros follows the last one.
template <class Load>
class MaskBits {
 public:
  constexpr explicit MaskBits(Load load) : load_(load) {}

  /// Cells [at, at + 64).
  [[gnu::always_inline]] constexpr std::uint64_t window(std::uint64_t at) const {
    const std::uint64_t k = at / 64;
    const unsigned shift = at % 64;
    return shift == 0 ? load_(k) : load_(k) >> shift | load_(k + 1) << (64 - shift);
  }
  /// Cells [at - back, at - back + 64); zeros before the first one.
  [[gnu::always_inline]] constexpr std::uint64_t window_before(std::uint64_t at, std::uint64_t back) const {
    if (at >= back) return window(at - back);
    return back - at >= 64 ? 0 : load_(0) << (back - at);
  }

 private:
  Load load_;
};

/// One bit a cell, set where its class is not 0, and a word of zeros more.
inline void pack_bits(const std::uint8_t* classes, std::uint64_t cells, std::uint64_t* words) {
  std::uint64_t k = 0;
  for (std::uint64_t at = 0; at < cells; at += 64, ++k) {
    std::uint64_t word = 0;
    const std::uint64_t n = std::min<std::uint64_t>(cells - at, 64);
    for (std::uint64_t x = 0; x < n; x += 8) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, classes + at + x, static_cast<std::size_t>(std::min<std::uint64_t>(n - x, 8)));
      word |= bytes_with_bits(eight) << x;
    }
    words[k] = word;
  }
  words[k] = 0;
}

/// Windows of 64 cells that planes are read in, each plane from its first cell on.
struct PlaneWindows {
  MaskPlanes planes;
  std::uint64_t of_plane = 1;  ///< windows of a whole plane

  constexpr explicit PlaneWindows(const MaskPlanes& p) : planes(p), of_plane((p.plane_cells() + 63) / 64) {}

  /// The bits that count of window k of a plane; none behind the plane's last cell.
  constexpr std::uint64_t within(std::uint64_t plane, std::uint64_t k) const {
    const std::uint64_t cells = planes.rows_of(plane) * planes.cols;
    if (64 * k >= cells) return 0;
    return cells - 64 * k >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (cells - 64 * k)) - 1;
  }
  /// Cells of the window that are unlike the reference plane's.
  template <class Bits>
  constexpr unsigned differ(const Bits& bits, std::uint64_t plane, std::uint64_t k, std::uint64_t distance) const {
    const std::uint64_t wanted = within(plane, k), at = plane * planes.plane_cells() + 64 * k;
    if (wanted == 0) return 0;
    const std::uint64_t back = (plane - reference_plane(plane, distance)) * planes.plane_cells();
    return static_cast<unsigned>(popcount((bits.window(at) ^ bits.window(at - back)) & wanted));
  }
  template <class Bits>
  constexpr std::uint64_t hashed(const Bits& bits, std::uint64_t plane, std::uint64_t k) const {
    const std::uint64_t wanted = within(plane, k);
    return wanted == 0 ? 0 : hashed_cells(bits.window(plane * planes.plane_cells() + 64 * k) & wanted, 64 * k);
  }
  /// Cells of the window that are like none of these as far as they exist: the cell before, the one a row before (both
  /// in C order), that of the reference plane.
  template <class Bits>
  constexpr unsigned surprises(const Bits& bits, std::uint64_t plane, std::uint64_t k, std::uint64_t distance) const {
    const std::uint64_t wanted = within(plane, k);
    if (wanted == 0) return 0;
    const std::uint64_t at = plane * planes.plane_cells() + 64 * k;
    const std::uint64_t own = bits.window(at);
    std::uint64_t other = (own ^ bits.window_before(at, 1)) & wanted;
    const std::uint64_t first_row = at >= planes.cols        ? 0
                                    : planes.cols - at >= 64 ? ~UINT64_C(0)
                                                             : (UINT64_C(1) << (planes.cols - at)) - 1;
    other &= (own ^ bits.window_before(at, planes.cols)) | first_row;
    if (plane > 0) other &= own ^ bits.window(at - (plane - reference_plane(plane, distance)) * planes.plane_cells());
    return static_cast<unsigned>(popcount(other));
  }
};

/// The distance of the reference planes that the fewest cells differ from, in 16 planes or fewer that lie evenly from the
/// last one on; 1 unless another saves more than one in 64. `differ(plane, distance)` counts them.
template <class Differ>
constexpr std::uint64_t nearest_distance_by(std::uint64_t planes, Differ&& differ) {
  constexpr std::uint64_t kMustSave = 64, kSampled = 16;
  const std::uint64_t step = (planes - 1 + kSampled - 1) / kSampled;
  std::uint64_t best = 1, fewest = UINT64_MAX;
  for (std::uint64_t d = 1; d <= kMaxReferenceDistance && d < planes; ++d) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = planes - 1; i > 0; i -= step < i ? step : i) sum += differ(i, d);
    if (d == 1 || sum < fewest - fewest / kMustSave) {
      best = d;
      fewest = sum;
    }
  }
  return best;
}
/// As one thread does it. Bits as pack_bits makes them.
template <class Bits>
constexpr std::uint64_t nearest_distance(const Bits& bits, const MaskPlanes& planes) {
  const PlaneWindows windows(planes);
  return nearest_distance_by(planes.count(), [&](std::uint64_t i, std::uint64_t distance) {
    std::uint64_t differ = 0;
    for (std::uint64_t k = 0; k < windows.of_plane; ++k) differ += windows.differ(bits, i, k, distance);
    return differ;
  });
}

/// Surprises that a view must save: its numbers take a few bytes.
inline constexpr std::uint64_t kViewMustSave = 16;

/// The distance at which most of `count` planes are repeated, by their hashes; 1 unless another is better.
constexpr std::uint64_t most_equal_distance(const std::uint64_t* hashes, std::uint64_t count) {
  if (count < 3) return 1;
  std::uint64_t best = 1, best_equal = 0;
  for (std::uint64_t d = 1; d <= kMaxReferenceDistance && d < count; ++d) {
    std::uint64_t equal = 0;
    for (std::uint64_t i = 1; i < count; ++i) equal += hashes[i] == hashes[reference_plane(i, d)] ? 1 : 0;
    if (equal > best_equal) {
      best = d;
      best_equal = equal;
    }
  }
  return best;
}

/// Of the planes of a box and those of its views the ones with the fewest surprises; a tie takes the first.
/// `surprises(planes)` counts them.
template <class Surprises>
constexpr MaskPlanes best_planes(const MaskPlanes& own, std::span<const MaskView> views, Surprises&& surprises) {
  MaskPlanes best = own;
  MaskPlanes last = own;
  std::uint64_t fewest = 0;
  for (const MaskView& view : views) {
    const MaskPlanes planes(own.cells, std::min(view.rows, own.cells / view.cols), view.cols);
    if (!is_view_of({planes.rows, planes.cols}, own) || planes == last) continue;
    if (last == own) {
      const std::uint64_t all = surprises(own);
      fewest = all > kViewMustSave ? all - kViewMustSave : 0;
    }
    last = planes;
    const std::uint64_t count = surprises(planes);
    if (count < fewest) {
      best = planes;
      fewest = count;
    }
  }
  return best;
}

/// The planes that one thread codes a mask in. `bits`: memory for cells / 64 + 2 words; `hashes`: for one a plane of at
/// least 64 cells, or of `own`.
inline MaskPlanes best_planes(const std::uint8_t* classes, const MaskPlanes& own, std::span<const MaskView> views,
                              std::uint64_t* words, std::uint64_t* hashes) {
  pack_bits(classes, own.cells, words);
  const MaskBits bits([words](std::uint64_t k) { return words[k]; });
  return best_planes(own, views, [&](const MaskPlanes& planes) {
    const PlaneWindows windows(planes);
    const std::uint64_t count = planes.count();
    for (std::uint64_t i = 0; i < count; ++i) {
      hashes[i] = 0;
      for (std::uint64_t k = 0; k < windows.of_plane; ++k) hashes[i] += windows.hashed(bits, i, k);
    }
    const std::uint64_t distance = most_equal_distance(hashes, count);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      for (std::uint64_t k = 0; k < windows.of_plane; ++k) sum += windows.surprises(bits, i, k, distance);
    }
    return sum;
  });
}

}  // namespace quern::kernels

// Planes of masks that are coded by levels, as the lanes of a warp read and write them: rows of bits without gaps, 64
// cells at a time, and the lattices that a plane consists of. Over an execution model X (see kernels/README.md).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/lanes.h"
#include "kernels/mask/levels/lattice.h"
#include "kernels/mask/levels/rim.h"
#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

/// Rows of bits, one after the other, in words that lanes share. Two more words than the bits take can be read.
struct LaneBits {
  std::uint32_t* words = nullptr;
  std::uint32_t first = 0;  ///< where the first row begins
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;

  constexpr bool empty() const { return rows == 0 || cols == 0; }
  constexpr std::uint32_t cells() const { return rows * cols; }
  /// Groups of 64 cells that a row is read in.
  constexpr std::uint32_t along() const { return (cols + 63) / 64; }
  /// Those of group k that are columns.
  constexpr std::uint64_t columns(std::uint32_t k) const {
    return cols - 64 * k >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (cols - 64 * k)) - 1;
  }
};

/// Words for so many bits.
constexpr std::uint64_t lane_bit_words(std::uint64_t bits) { return bits / 32 + 3; }

/// 64 bits from cell `at` on. What lies behind the last cell is anything.
template <class X, class Lane>
[[gnu::always_inline]] constexpr std::uint64_t lane_window(const LaneBits& bits, std::uint32_t at, Lane lane) {
  const std::uint32_t bit = bits.first + at, shift = bit % 32;
  const std::uint32_t* const word = bits.words + bit / 32;
  const std::uint32_t low = X::load(word, lane), middle = X::load(word + 1, lane), high = X::load(word + 2, lane);
  return X::funnel_right(low, middle, shift) | static_cast<std::uint64_t>(X::funnel_right(middle, high, shift)) << 32;
}

/// Cells [64 k, 64 k + 64) of a row, moved by -1 to 2 columns; beyond its ends a row goes on with its end cells.
template <class X, class Lane>
[[gnu::always_inline]] constexpr std::uint64_t moved_lane_bits(const LaneBits& bits, std::uint32_t row, std::uint32_t k,
                                                               int columns, Lane lane) {
  const std::uint32_t from = row * bits.cols;
  const bool before = columns < 0 && k == 0;
  const std::uint32_t begin = before ? 0 : 64 * k + static_cast<std::uint32_t>(columns);
  const std::uint32_t last = bits.cols - 1;
  const std::uint64_t fill = UINT64_C(0) - (lane_window<X>(bits, from + last, lane) & 1);
  if (begin > last) return fill;
  std::uint64_t word = lane_window<X>(bits, from + begin, lane);
  const std::uint32_t there = last - begin;  // one less than the cells from the first on
  if (there < 63) {
    const std::uint64_t inside = (UINT64_C(2) << there) - 1;
    word = (word & inside) | (fill & ~inside);
  }
  return before ? word << 1 | (word & 1) : word;
}

/// Turns over cells from `at` on, of which several lanes have some.
template <class X, class Lane>
[[gnu::always_inline]] constexpr void flip_lane_bits(const LaneBits& bits, std::uint32_t at, std::uint64_t which,
                                                     Lane lane) {
  const std::uint32_t bit = bits.first + at, shift = bit % 32;
  std::uint32_t* const word = bits.words + bit / 32;
  const auto low = static_cast<std::uint32_t>(which), high = static_cast<std::uint32_t>(which >> 32);
  const std::uint32_t parts[3] = {low << shift, shift == 0 ? high : low >> (32 - shift) | high << shift,
                                  shift == 0 ? 0 : high >> (32 - shift)};
  unroll<3>([&](auto i) {
    if (parts[i] != 0) X::flip_bits(word + i, lane, parts[i]);
  });
}

/// All bits 0, for all lanes.
template <class X>
constexpr void clear_lane_words(std::uint32_t* words, std::uint32_t bits) {
  const auto count = static_cast<std::uint32_t>(lane_bit_words(bits));
  X::lanes([&](auto lane) {
    for (auto k = static_cast<std::uint32_t>(lane); k < count; k += kLanes) X::store(words + k, lane, 0u);
  });
}

/// Calls f(row, k, lane) for the groups of 64 cells of all rows.
template <class X, class F>
constexpr void for_lane_words(const LaneBits& bits, F&& f) {
  const std::uint32_t along = bits.along(), count = bits.rows * along;
  X::lanes([&](auto lane) {
    for (auto item = static_cast<std::uint32_t>(lane); item < count; item += kLanes)
      f(item / along, item % along, lane);
  });
}

/// Rows of bits as MaskRows takes them.
template <class X, class Lane>
class LaneWindows {
 public:
  constexpr LaneWindows(const LaneBits& bits, Lane lane) : bits_(bits), lane_(lane) {}
  constexpr std::uint64_t window(std::uint64_t at) const {
    return lane_window<X>(bits_, static_cast<std::uint32_t>(at), lane_);
  }
  constexpr std::uint64_t window_before(std::uint64_t at, std::uint64_t back) const { return window(at - back); }

 private:
  LaneBits bits_;
  Lane lane_;
};

/// The rim of a mask (see MaskRows), into words of bits.
template <class X>
constexpr void load_lane_rim(const LaneBits& masked, std::uint32_t* words) {
  const LaneBits rim{words, 0, masked.rows, masked.cols};
  clear_lane_words<X>(words, rim.cells());
  X::sync();
  for_lane_words<X>(rim, [&](std::uint32_t row, std::uint32_t k, auto lane) {
    const MaskRows rows(LaneWindows<X, decltype(lane)>(masked, lane), masked.cells(), masked.cols);
    flip_lane_bits<X>(rim, row * rim.cols + 64 * k, rows.rim(row, k), lane);
  });
  X::sync();
}

/// Where a lattice begins among the words of a pyramid.
struct LevelPlace {
  std::uint32_t word;
  std::uint32_t rows;
  std::uint32_t cols;
};
inline constexpr unsigned kMostLaneLevels = 32;
inline constexpr unsigned kLatticesOfLevel = 1 + level_contexts::kPhases;

/// Places of the lattices of a plane whose base cells are 2^levels apart: at 4 t the cells known before distance 2^t,
/// then those of its phases. At 0 would be the plane, which lies elsewhere. By one lane.
template <class X>
constexpr void place_lattices(std::uint32_t rows, std::uint32_t cols, unsigned levels, LevelPlace* places) {
  std::uint32_t word = 0;
  const auto place = [&](LevelPlace* at, std::uint32_t r, std::uint32_t c) {
    X::store(&at->word, 0, word);
    X::store(&at->rows, 0, r);
    X::store(&at->cols, 0, c);
    word += static_cast<std::uint32_t>(lane_bit_words(std::uint64_t{r} * c));
  };
  for (unsigned t = 0; t < levels; ++t) {
    LevelPlace* const at = places + kLatticesOfLevel * t;
    place(at + 1, (rows + 1) / 2, cols / 2);
    place(at + 2, rows / 2, (cols + 1) / 2);
    place(at + 3, rows / 2, cols / 2);
    rows = (rows + 1) / 2;
    cols = (cols + 1) / 2;
    place(at + kLatticesOfLevel, rows, cols);
  }
}

/// Words of the lattices of any plane of so many cells: the phases have no more cells than the plane, and what is known
/// before them no more than that again.
constexpr std::uint64_t most_pyramid_words(std::uint64_t cells) {
  return lane_bit_words(2 * cells) + 4 * kLatticesOfLevel * kMostLaneLevels;
}

/// A plane and its lattices, of which the places are known.
template <class X>
class LanePyramid {
 public:
  constexpr LanePyramid(std::uint32_t* words, const LevelPlace* places) : words_(words), places_(places) {}

  LaneBits plane;

  /// Cells at multiples of 2^t.
  constexpr LaneBits known(unsigned t) const { return t == 0 ? plane : at(kLatticesOfLevel * t); }
  /// Those of a phase at distance 2^t.
  constexpr LaneBits phase(unsigned t, unsigned number) const { return at(kLatticesOfLevel * t + 1 + number); }
  constexpr LaneBits lattice(unsigned t, LevelLattice which) const {
    return which == LevelLattice::known ? known(t + 1) : phase(t, which == LevelLattice::a ? 0 : 1);
  }

  /// All lattices, from the plane.
  constexpr void split(unsigned levels) const {
    for (unsigned t = 0; t < levels; ++t) {
      const LaneBits from = known(t);
      unroll<kLatticesOfLevel>([&](auto which) {
        const LaneBits to = which == 0 ? known(t + 1) : phase(t, which - 1);
        if (to.empty()) return;
        clear_lane_words<X>(to.words, to.cells());
        X::sync();
        constexpr std::uint32_t kRow = which >= 2 ? 1 : 0, kColumn = which % 2;
        for_lane_words<X>(to, [&](std::uint32_t row, std::uint32_t k, auto lane) {
          const std::uint32_t begin = (2 * row + kRow) * from.cols + 128 * k + kColumn;
          std::uint64_t word = even_bits(lane_window<X>(from, begin, lane));
          if (to.cols - 64 * k > 32) word |= even_bits(lane_window<X>(from, begin + 64, lane)) << 32;
          flip_lane_bits<X>(to, row * to.cols + 64 * k, word & to.columns(k), lane);
        });
        X::sync();
      });
    }
  }
  /// The cells known after distance 2^t, which are 0, from those before and those of its phases.
  constexpr void join(unsigned t) const {
    const LaneBits to = known(t), before = known(t + 1);
    const LaneBits a = phase(t, 0), b = phase(t, 1), c = phase(t, 2);
    for_lane_words<X>(to, [&](std::uint32_t row, std::uint32_t k, auto lane) {
      const LaneBits& even = row % 2 == 0 ? before : b;
      const LaneBits& odd = row % 2 == 0 ? a : c;
      std::uint64_t word = spread_bits(lane_window<X>(even, row / 2 * even.cols + 32 * k, lane));
      if (32 * k < odd.cols) word |= spread_bits(lane_window<X>(odd, row / 2 * odd.cols + 32 * k, lane)) << 1;
      flip_lane_bits<X>(to, row * to.cols + 64 * k, word & to.columns(k), lane);
    });
    X::sync();
  }

 private:
  constexpr LaneBits at(unsigned place) const {
    const LevelPlace& p = places_[place];
    return {words_ + X::load_same(&p.word), 0, X::load_same(&p.rows), X::load_same(&p.cols)};
  }

  std::uint32_t* words_;
  const LevelPlace* places_;
};

}  // namespace quern::kernels

// Planes of masks that are coded by levels, as bits: rows with padding, and the lattices that a plane consists of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <quern/memory.h>

#include "kernels/mask/levels/lattice.h"

namespace quern::mask {

/// Rows of bits. Behind its last column a row goes on with the bit of that column, to the end of the word after.
class LevelBits {
 public:
  void resize(std::uint64_t rows, std::uint64_t cols) {
    rows_ = rows;
    cols_ = cols;
    words_ = words_of(cols);
    bits_.resize(rows * pitch());
  }
  /// What that allocates.
  static constexpr std::uint64_t bytes(std::uint64_t rows, std::uint64_t cols) {
    return rows * (words_of(cols) + 1) * sizeof(std::uint64_t);
  }
  static constexpr std::uint64_t words_of(std::uint64_t cols) { return cols / 64 + (cols % 64 != 0 ? 1 : 0); }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t cols() const { return cols_; }
  std::uint64_t words() const { return words_; }
  bool empty() const { return rows_ == 0 || cols_ == 0; }
  std::uint64_t* row(std::uint64_t y) { return bits_.data() + y * pitch(); }
  const std::uint64_t* row(std::uint64_t y) const { return bits_.data() + y * pitch(); }
  bool get(std::uint64_t y, std::uint64_t x) const { return (row(y)[x / 64] >> x % 64 & 1) != 0; }
  void set(std::uint64_t y, std::uint64_t x, std::uint64_t bit) { row(y)[x / 64] |= bit << x % 64; }
  void clear() { bits_.assign(bits_.size(), 0); }
  /// Bits of word k that are columns.
  std::uint64_t columns(std::uint64_t k) const {
    return cols_ - 64 * k >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (cols_ - 64 * k)) - 1;
  }
  void pad(std::uint64_t y) {
    if (words_ == 0) return;
    std::uint64_t* const last = row(y) + words_ - 1;
    const std::uint64_t inside = columns(words_ - 1);
    const std::uint64_t fill = UINT64_C(0) - (*last >> (cols_ - 1) % 64 & 1);
    *last = (*last & inside) | (fill & ~inside);
    last[1] = fill;
  }

 private:
  std::uint64_t pitch() const { return words_ + 1; }

  std::uint64_t rows_ = 0;
  std::uint64_t cols_ = 0;
  std::uint64_t words_ = 0;
  Vector<std::uint64_t> bits_;
};

/// A plane and the lattices of all distances 2^t: cells known before the phases of that distance, and their own.
class LevelPyramid {
 public:
  static constexpr unsigned kMostLevels = 64;

  /// Lattices of a plane whose base cells are 2^levels apart. Their bits are not set.
  void resize(std::uint64_t rows, std::uint64_t cols, unsigned levels) {
    levels_ = levels;
    known_[0].resize(rows, cols);
    for (unsigned t = 0; t < levels; ++t) {
      const std::uint64_t even_rows = (known_[t].rows() + 1) / 2, odd_rows = known_[t].rows() / 2;
      const std::uint64_t even_cols = (known_[t].cols() + 1) / 2, odd_cols = known_[t].cols() / 2;
      known_[t + 1].resize(even_rows, even_cols);
      phases_[t][0].resize(even_rows, odd_cols);
      phases_[t][1].resize(odd_rows, even_cols);
      phases_[t][2].resize(odd_rows, odd_cols);
    }
  }
  /// What that allocates.
  static constexpr std::uint64_t bytes(std::uint64_t rows, std::uint64_t cols, unsigned levels) {
    std::uint64_t sum = LevelBits::bytes(rows, cols);
    for (unsigned t = 0; t < levels; ++t, rows = (rows + 1) / 2, cols = (cols + 1) / 2)
      sum += LevelBits::bytes(rows, (cols + 1) / 2) + LevelBits::bytes(rows, cols / 2);
    return sum;
  }
  unsigned levels() const { return levels_; }
  LevelBits& plane() { return known_[0]; }
  const LevelBits& plane() const { return known_[0]; }
  /// Cells at multiples of 2^t.
  LevelBits& known(unsigned t) { return known_[t]; }
  const LevelBits& known(unsigned t) const { return known_[t]; }
  /// Those of a phase at distance 2^t.
  LevelBits& phase(unsigned t, unsigned number) { return phases_[t][number]; }
  const LevelBits& phase(unsigned t, unsigned number) const { return phases_[t][number]; }
  const LevelBits& lattice(unsigned t, kernels::LevelLattice which) const {
    return which == kernels::LevelLattice::known ? known_[t + 1]
                                                 : phases_[t][which == kernels::LevelLattice::a ? 0 : 1];
  }

  /// All lattices, from the plane.
  void split() {
    for (unsigned t = 0; t < levels_; ++t) {
      for (std::uint64_t y = 0; y < known_[t].rows(); ++y) {
        const std::uint64_t* const row = known_[t].row(y);
        split_row(row, y % 2 == 0 ? known_[t + 1] : phases_[t][1], y / 2, 0);
        split_row(row, phases_[t][y % 2 == 0 ? 0 : 2], y / 2, 1);
      }
    }
  }
  /// The cells known after distance 2^t, from those before and those of its phases.
  void join(unsigned t) {
    for (std::uint64_t y = 0; y < known_[t].rows(); ++y) {
      const std::uint64_t* const even = (y % 2 == 0 ? known_[t + 1] : phases_[t][1]).row(y / 2);
      const LevelBits& odd_columns = phases_[t][y % 2 == 0 ? 0 : 2];
      std::uint64_t* const row = known_[t].row(y);
      for (std::uint64_t k = 0; k < known_[t].words(); ++k) {
        const unsigned half = k % 2 == 0 ? 0 : 32;
        row[k] = kernels::spread_bits(even[k / 2] >> half);
        if (k / 2 < odd_columns.words()) row[k] |= kernels::spread_bits(odd_columns.row(y / 2)[k / 2] >> half) << 1;
      }
      known_[t].pad(y);
    }
  }

 private:
  static void split_row(const std::uint64_t* row, LevelBits& to, std::uint64_t y, unsigned odd) {
    std::uint64_t* const out = to.row(y);
    for (std::uint64_t k = 0; k < to.words(); ++k)
      out[k] = kernels::even_bits(row[2 * k] >> odd) | kernels::even_bits(row[2 * k + 1] >> odd) << 32;
    to.pad(y);
  }

  unsigned levels_ = 0;
  std::array<LevelBits, kMostLevels> known_;
  std::array<std::array<LevelBits, kernels::level_contexts::kPhases>, kMostLevels> phases_;
};

/// How many of the eight cells around each are like it, as kernels::equal_around says; beyond the plane its border goes
/// on. `alike`: where all are.
class LevelEqual {
 public:
  static constexpr std::uint64_t bytes(std::uint64_t rows, std::uint64_t cols) {
    return 3 * LevelBits::bytes(rows, cols);
  }
  void look(const LevelBits& plane, LevelBits& alike) {
    for (LevelBits& bits : numbers_) bits.resize(plane.rows(), plane.cols());
    for (std::uint64_t y = 0; y < plane.rows(); ++y) {
      const std::uint64_t* const here = plane.row(y);
      const std::uint64_t* const above = plane.row(y == 0 ? 0 : y - 1);
      const std::uint64_t* const below = plane.row(y + 1 < plane.rows() ? y + 1 : y);
      for (std::uint64_t k = 0; k < plane.words(); ++k) {
        using kernels::moved_word;
        const std::uint64_t around[8] = {moved_word(above, k, -1),
                                         above[k],
                                         moved_word(above, k, 1),
                                         moved_word(here, k, -1),
                                         moved_word(here, k, 1),
                                         moved_word(below, k, -1),
                                         below[k],
                                         moved_word(below, k, 1)};
        const kernels::LevelNumbers equal = kernels::equal_around(here[k], around);
        for (unsigned b = 0; b < 3; ++b) numbers_[b].row(y)[k] = equal.bit[b];
        alike.row(y)[k] = equal.bit[1] & equal.bit[2];
      }
      alike.pad(y);
    }
  }
  unsigned of(std::uint64_t y, std::uint64_t x) const {
    const unsigned shift = x % 64;
    return static_cast<unsigned>((numbers_[0].row(y)[x / 64] >> shift & 1) |
                                 (numbers_[1].row(y)[x / 64] >> shift & 1) << 1 |
                                 (numbers_[2].row(y)[x / 64] >> shift & 1) << 2);
  }

 private:
  std::array<LevelBits, 3> numbers_;
};

}  // namespace quern::mask

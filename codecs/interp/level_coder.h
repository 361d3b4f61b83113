// The closed loop of an encoder over the levels of a box: predictions, codes, and the symbols they become.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <quern/memory.h>

#include "codecs/interp/chunk.h"
#include "codecs/interp/context_fit.h"
#include "codecs/interp/head.h"
#include "codecs/interp/level_grid.h"

namespace quern::codec::interp {

/// The grids of all levels, anchors first. A level that adds no points has no grid of its own: memory stays in proportion
/// to the elements whatever the tiles are.
template <class Word>
class LevelGrids {
 public:
  LevelGrids(Arena& arena, const kernels::InterpTile& tile, const Extents& extents) {
    unsigned at = tile.levels();
    for (unsigned level = tile.levels() + 1; level-- > 0;) {
      const LevelShape shape(tile, level, extents);
      if (level == tile.levels() || shape.adds_points()) grids_[at = level].emplace(arena, shape);
      at_[level] = at;
    }
  }
  /// True where a level has points that the one above, or none, does not have.
  bool adds_points(unsigned level) const { return at_[level] == level; }
  /// The points of a level; the steps and halved axes are those of the level that the grid was made for.
  const LevelGrid<Word>& operator[](unsigned level) const { return *grids_[at_[level]]; }

 private:
  std::array<unsigned, kernels::kInterpMaxTileLog + 1> at_{};  ///< the level whose grid a level has
  std::array<std::optional<LevelGrid<Word>>, kernels::kInterpMaxTileLog + 1> grids_;
};

/// The row before an anchor's in the order of anchors predicts the first of a row.
inline ClassRow row_before(ClassRow row) { return row.y > 0 ? ClassRow{row.z, row.y - 1} : ClassRow{row.z - 1, 0}; }

template <class Word>
class LevelCoder {
 public:
  LevelCoder(Arena& arena, const ChunkSpec& spec, const Extents& extents)
      : spec_(spec),
        extents_(extents),
        elems_(extents[0] * extents[1] * extents[2]),
        targets(arena.take<Word>(elems_ + kRunStep)),
        special(arena.take<std::uint8_t>(elems_)),
        codes(arena.take<std::int32_t>(elems_ + kRunStep)),
        symbols(arena.take<std::uint16_t>(elems_)),
        grids_(arena, spec.tile, extents),
        columns_(arena, extents[2]),
        spread_(arena.take<std::uint32_t>(elems_ + kRunStep)),
        row_(arena.take<Word>(extents[2] + kRunStep)),
        special_row_(arena.take<std::uint8_t>(extents[2] + kRunStep)) {}

  /// Begins with the anchors; targets, and `special` where some are, are set.
  void start(unsigned fraction_bits, bool any_special) {
    fraction_bits_ = fraction_bits;
    any_special_ = any_special;
    const unsigned top = spec_.tile.levels();
    const LevelGrid<Word>& grid = grids_[top];
    coded_ = 0;
    for_rows(grid.shape, 0, [&](ClassRow row) {
      const Word* const target = load(grid.shape, row, 0);
      Word* const values = grid.values(row, 0);
      std::fill_n(grid.magnitudes(row, 0), grid.shape.points[2], std::uint16_t{0});
      const bool first = row.z == 0 && row.y == 0;
      Word last = first ? Word{0} : *grid.values(row_before(row), 0);
      for (std::size_t x = 0; x < grid.shape.points[2]; ++x) {
        values[x] = last;
        std::uint16_t magnitude = 0;
        spec_.kernels->rows<Word>().code(target + x, special_of_row() == nullptr ? nullptr : special_row_ + x, 1,
                                         fraction_bits_, values + x, codes + coded_, &magnitude);
        last = values[x];
        symbols[coded_] = static_cast<std::uint16_t>(kernels::kInterpAnchorBin * kernels::kTokenStride +
                                                     kernels::token_of(kernels::magnitude_of(codes[coded_])));
        ++coded_;
      }
    });
    first_[top] = 0;
  }
  /// Of the anchors, once start() has coded them: their values in C order.
  void anchor_values(Word* out) const {
    const LevelGrid<Word>& grid = grids_[spec_.tile.levels()];
    for_rows(grid.shape, 0, [&](ClassRow row) { out = std::copy_n(grid.values(row, 0), grid.shape.points[2], out); });
  }
  /// Begins a level, when the one above has been coded.
  void open(unsigned level) {
    level_ = level;
    first_[level] = coded_;
    if (grids_.adds_points(level)) grids_[level].take(grids_[level + 1], *spec_.kernels);
  }
  std::size_t count(unsigned c) const { return grids_.adds_points(level_) ? grids_[level_].shape.count(c) : 0; }

  /// About what a class of the open level costs under a predictor, of every `stride`-th row, in units of 2^-8 bits.
  std::uint64_t cost(unsigned c, kernels::InterpPredictor predictor, std::size_t stride) {
    const LevelGrid<Word>& grid = grids_[level_];
    const std::size_t columns = grid.shape.columns(c);
    if (count(c) == 0) return 0;
    const ClassPredictor<Word> by(grid, c, predictor, columns_);
    std::uint64_t sum = 0;
    std::size_t number = 0;
    for_rows(grid.shape, c, [&](ClassRow row) {
      if (number++ % stride != 0) return;
      Word* const values = grid.values(row, c);
      by.predict(row, *spec_.kernels, values);
      const Word* const target = load(grid.shape, row, c);
      sum += spec_.kernels->rows<Word>().cost(target, values, special_of_row(), columns, fraction_bits_);
    });
    return sum;
  }

  /// Codes a class; returns its context.
  kernels::InterpContext code(unsigned c, kernels::InterpPredictor predictor) {
    const LevelGrid<Word>& grid = grids_[level_];
    const std::size_t columns = grid.shape.columns(c);
    if (count(c) == 0) return {};
    const ClassPredictor<Word> by(grid, c, predictor, columns_);
    const std::size_t sampled = kernels::interp_fit_stride(count(c));
    const std::size_t begin = coded_;
    ContextFit fit;
    std::size_t number = 0;
    for_rows(grid.shape, c, [&](ClassRow row) {
      Word* const values = grid.values(row, c);
      by.predict(row, *spec_.kernels, values);
      const Word* const target = load(grid.shape, row, c);
      spec_.kernels->rows<Word>().code(target, special_of_row(), run_length(columns), fraction_bits_, values,
                                       codes + coded_, grid.magnitudes(row, c));
      std::uint32_t* const spread = spread_ + (coded_ - begin);
      by.spread(row, *spec_.kernels, spread);
      if (number++ % sampled == 0) fit.add(spread, codes + coded_, columns);
      coded_ += columns;
    });
    const kernels::InterpContext context = fit.fit();
    spec_.kernels->contexts(context, coded_ - begin, spread_);
    spec_.residuals->symbols(spread_, codes + begin, coded_ - begin, symbols + begin);
    return context;
  }

  /// Where the codes of a level begin, once it is open; anchors are of the level above all.
  std::size_t first(unsigned level) const { return first_[level]; }
  std::size_t elems() const { return elems_; }
  std::size_t coded() const { return coded_; }
  /// The values of a row of the chunk, when all is coded.
  void values(ClassRow row, Word* out) const { grids_[0].row(row, *spec_.kernels, out); }

 private:
  const std::uint8_t* special_of_row() const { return any_special_ ? special_row_ : nullptr; }
  /// The targets of a row of a class, and which are special.
  const Word* load(const LevelShape& shape, ClassRow row, unsigned c) {
    const bool odd = (c & 4) != 0;
    const std::size_t step = shape.steps[2] << (shape.halved >> 2 & 1);
    const std::size_t at =
        (row.z * shape.steps[0] * extents_[1] + row.y * shape.steps[1]) * extents_[2] + (odd ? shape.steps[2] : 0);
    const std::size_t columns = shape.columns(c);
    if (any_special_)
      for (std::size_t x = 0; x < columns; ++x) special_row_[x] = special[at + step * x];
    if (step == 1) return targets + at;
    spec_.kernels->rows<Word>().gather(targets + at, step, columns, row_);
    return row_;
  }

  const ChunkSpec& spec_;
  Extents extents_;
  std::size_t elems_;

 public:
  Word* targets;          ///< the chunk in units, in C order
  std::uint8_t* special;  ///< the same elements: not 0 where the code does not matter
  std::int32_t* codes;    ///< in the order of coding
  std::uint16_t* symbols;

 private:
  LevelGrids<Word> grids_;
  ColumnWeights columns_;
  std::uint32_t* spread_;
  Word* row_;
  std::uint8_t* special_row_;
  unsigned fraction_bits_ = 0;
  bool any_special_ = false;
  unsigned level_ = 0;
  std::size_t coded_ = 0;
  std::array<std::size_t, kernels::kInterpMaxTileLog + 1> first_{};
};

}  // namespace quern::codec::interp

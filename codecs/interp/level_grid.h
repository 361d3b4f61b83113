// The points of a chunk at one level: values and magnitudes of codes in rows, and what predicts a row. Where the level
// halves the last axis, a row has its even points first and its odd ones behind them, so that every neighbour of a run
// of points is a run, too.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "codecs/interp/rules.h"
#include "kernels/interp/cpu/interp.h"
#include "libcompress/core/arena.h"

namespace quern::codec::interp {

using Extents = std::array<std::size_t, 3>;

/// Runs of points are handed to kernels in whole vectors: what lies behind them is read and written, too, and has no
/// meaning. Short runs are not worth that room.
inline constexpr std::size_t kRunStep = 16;
constexpr std::size_t run_length(std::size_t columns) {
  return columns < kRunStep ? columns : (columns + kRunStep - 1) / kRunStep * kRunStep;
}

inline Extents chunk_extents(const std::array<std::uint64_t, 3>& extents) {
  return {static_cast<std::size_t>(extents[0]), static_cast<std::size_t>(extents[1]),
          static_cast<std::size_t>(extents[2])};
}

/// Extents of a level, and how rows lie in memory. Level tile.levels() has the anchors.
struct LevelShape {
  LevelShape(const kernels::InterpTile& tile, unsigned number, const Extents& extents) : level(number) {
    halved = number < tile.levels() ? tile.axes(number) : 0;
    for (std::size_t a = 0; a < 3; ++a) {
      points[a] = tile.points(number, a, extents[a]);
      coarse[a] = (halved >> a & 1) != 0 ? tile.points(number + 1, a, extents[a]) : points[a];
      steps[a] = std::size_t{1} << tile.step_log(number, a);
      tile_log[a] = tile.logs[a] > number ? tile.logs[a] - number - 1u : 0u;
    }
    const bool split = (halved & 4) != 0;
    even = split ? kBefore : 0;
    odd = even + run_length(coarse[2]) + (split ? kBehind : 0);
    pitch = odd + run_length(points[2] - coarse[2]);
  }

  /// False where the level has no points but those of the level above.
  bool adds_points() const { return points != coarse; }
  std::size_t rows() const { return points[0] * points[1]; }
  std::size_t room() const { return rows() * pitch + kBefore + kBehind + kRunStep; }
  /// Points of a class in a row.
  std::size_t columns(unsigned c) const { return (c & 4) != 0 ? points[2] - coarse[2] : coarse[2]; }
  std::size_t count(unsigned c) const {
    std::size_t n = 1;
    for (std::size_t a = 0; a < 3; ++a) n *= (c >> a & 1) != 0 ? points[a] - coarse[a] : coarse[a];
    return n;
  }

  static constexpr std::size_t kBefore = 1;  ///< columns that rows of neighbours reach beyond the even points
  static constexpr std::size_t kBehind = 2;
  unsigned level;
  unsigned halved;  ///< bit a: the level halves axis a
  Extents points{};
  Extents coarse{};                    ///< points of the level above
  Extents steps{};                     ///< distance of points in the chunk
  std::array<unsigned, 3> tile_log{};  ///< a tile has 2^this coarse steps
  std::size_t even = 0;                ///< where even and odd points of a row begin
  std::size_t odd = 0;
  std::size_t pitch = 0;
};

/// A row of a class.
struct ClassRow {
  std::size_t z = 0;
  std::size_t y = 0;
};

/// Calls visit(row) for the rows of a class in order.
template <class Visit>
void for_rows(const LevelShape& shape, unsigned c, const Visit& visit) {
  const auto first = [&](std::size_t a) { return std::size_t{c >> a & 1}; };
  const auto step = [&](std::size_t a) { return std::size_t{1} + (shape.halved >> a & 1); };
  for (std::size_t z = first(0); z < shape.points[0]; z += step(0))
    for (std::size_t y = first(1); y < shape.points[1]; y += step(1)) visit(ClassRow{z, y});
}

template <class Word>
class LevelGrid {
 public:
  LevelGrid(Arena& arena, const LevelShape& level)
      : shape(level), values_(arena.take<Word>(level.room())), magnitudes_(arena.take<std::uint16_t>(level.room())) {}

  std::size_t at(ClassRow row, unsigned c) const {
    return (row.z * shape.points[1] + row.y) * shape.pitch + ((c & 4) != 0 ? shape.odd : shape.even);
  }
  Word* values(ClassRow row, unsigned c) const { return values_ + at(row, c); }
  std::uint16_t* magnitudes(ClassRow row, unsigned c) const { return magnitudes_ + at(row, c); }

  /// Takes the points of the level above as the even ones.
  void take(const LevelGrid& coarser, const kernels::InterpKernels& kernels) const {
    const auto stride = [&](std::size_t a) { return std::size_t{1} + (shape.halved >> a & 1); };
    for (std::size_t z = 0; z < shape.coarse[0]; ++z)
      for (std::size_t y = 0; y < shape.coarse[1]; ++y) {
        const ClassRow to{z * stride(0), y * stride(1)};
        coarser.row({z, y}, kernels, values(to, 0));
        const std::uint16_t* const even = coarser.magnitudes({z, y}, 0);
        if (coarser.split()) {
          kernels.interleave(even, coarser.magnitudes({z, y}, 4), shape.coarse[2], magnitudes(to, 0));
        } else {
          std::memcpy(magnitudes(to, 0), even, shape.coarse[2] * sizeof(*even));
        }
      }
  }
  /// The values of a row in order.
  void row(ClassRow row, const kernels::InterpKernels& kernels, Word* out) const {
    if (split()) {
      kernels.rows<Word>().interleave(values(row, 0), values(row, 4), shape.points[2], out);
    } else {
      std::memcpy(out, values(row, 0), shape.points[2] * sizeof(Word));
    }
  }
  bool split() const { return (shape.halved & 4) != 0; }

  LevelShape shape;

 private:
  Word* values_;
  std::uint16_t* magnitudes_;
};

/// The weights of neighbours along the last axis, a row for each of the four.
class ColumnWeights {
 public:
  ColumnWeights(Arena& arena, std::size_t columns)
      : pitch_(columns + kRunStep), rows_(arena.take<std::int32_t>(4 * pitch_)) {}
  void fill(const LevelShape& shape, kernels::InterpKind kind) {
    const std::size_t columns = shape.points[2] - shape.coarse[2];
    const std::size_t period = std::size_t{1} << shape.tile_log[2];
    const auto set = [&](std::size_t i) {
      const auto weights = kernels::interp_weights_at(kind, i, shape.coarse[2], shape.tile_log[2]);
      for (std::size_t k = 0; k < 4; ++k) rows_[k * pitch_ + i] = weights[k];
    };
    // Tiles are alike but for the last two steps of all.
    const std::size_t own = std::min(columns, period);
    for (std::size_t i = 0; i < own; ++i) set(i);
    for (std::size_t done = own; done < columns;) {
      const std::size_t some = std::min(done, columns - done);
      for (std::size_t k = 0; k < 4; ++k)
        std::memcpy(rows_ + k * pitch_ + done, rows_ + k * pitch_, some * sizeof(*rows_));
      done += some;
    }
    for (std::size_t i = columns - std::min<std::size_t>(columns, 2); i < columns; ++i) set(i);
  }
  const std::int32_t* rows() const { return rows_; }
  std::size_t pitch() const { return pitch_; }

 private:
  std::size_t pitch_;
  std::int32_t* rows_;
};

/// Predicts rows of one class.
template <class Word>
class ClassPredictor {
 public:
  ClassPredictor(const LevelGrid<Word>& grid, unsigned c, kernels::InterpPredictor predictor, ColumnWeights& columns)
      : grid_(grid), class_(c), predictor_(predictor), columns_(columns) {
    if ((predictor.axes & 4) != 0) columns.fill(grid.shape, predictor.kind);
  }

  void predict(ClassRow row, const kernels::InterpKernels& kernels, Word* out) const {
    std::array<kernels::InterpAxis<Word>, 3> axes;
    unsigned count = 0;
    for (std::size_t a = 3; a-- > 0;)
      if ((predictor_.axes >> a & 1) != 0) axes[count++] = axis(row, a);
    kernels.rows<Word>().predict(axes.data(), count, run_length(grid_.shape.columns(class_)), out);
  }

  /// What the contexts of a row are made of.
  void spread(ClassRow row, const kernels::InterpKernels& kernels, std::uint32_t* out) const {
    const LevelShape& shape = grid_.shape;
    const std::size_t columns = shape.columns(class_);
    kernels::InterpSpread from;
    for (std::size_t a = 0; a < 3; ++a) {
      if ((class_ >> a & 1) == 0) continue;
      const unsigned other = class_ & ~(1u << a);
      const std::uint16_t* before = nullptr;
      const std::uint16_t* after = nullptr;
      if (a == 2) {
        before = grid_.magnitudes(row, other);
        after = before + 1;
      } else {
        ClassRow near = row;
        std::size_t& place = a == 0 ? near.z : near.y;
        --place;
        before = grid_.magnitudes(near, other);
        if (place + 2 < shape.points[a]) place += 2;
        after = grid_.magnitudes(near, other);
      }
      from.from[2 * from.axes] = before;
      from.from[2 * from.axes + 1] = after;
      ++from.axes;
    }
    // Where the last odd point has no point behind it, that of the one before it counts twice.
    if ((class_ & 4) != 0 && shape.coarse[2] == columns) {
      std::uint16_t* const end = grid_.magnitudes(row, class_ & ~4u) + columns;
      *end = end[-1];
    }
    kernels.spread(from, run_length(columns), out);
  }

 private:
  kernels::InterpAxis<Word> axis(ClassRow row, std::size_t a) const {
    const LevelShape& shape = grid_.shape;
    const unsigned other = class_ & ~(1u << a);
    kernels::InterpAxis<Word> axis;
    if (a == 2) {
      const Word* const even = grid_.values(row, other);
      axis.from = {even - 1, even, even + 1, even + 2};
      axis.rows = columns_.rows();
      axis.pitch = columns_.pitch();
      return axis;
    }
    const std::size_t place = a == 0 ? row.z : row.y;
    const auto weights = kernels::interp_weights_at(predictor_.kind, place / 2, shape.coarse[a], shape.tile_log[a]);
    const auto neighbour = [&](std::size_t k) {
      ClassRow near = row;
      (a == 0 ? near.z : near.y) = place + 2 * k - 3;
      return grid_.values(near, other);
    };
    for (std::size_t k = 0; k < 4; ++k) {
      axis.weights[k] = weights[k];
      axis.from[k] = neighbour(weights[k] != 0 ? k : 1);
    }
    return axis;
  }

  const LevelGrid<Word>& grid_;
  unsigned class_;
  kernels::InterpPredictor predictor_;
  ColumnWeights& columns_;
};

}  // namespace quern::codec::interp

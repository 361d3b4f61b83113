// Which points of a class fits look at, and what they are told of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/levels/axes.h"
#include "codecs/stencil/levels/grid.h"
#include "kernels/stencil/cpu/stencil.h"
#include "libcompress/core/scattered_sample.h"

namespace quern::codec::stencil {

/// Gives rows of values in units.
class TargetRows {
 public:
  virtual ~TargetRows() = default;
  /// The row of a class of the open level whose first point has number `code` in the order of coding, until the next is
  /// asked for.
  virtual const std::int64_t* row(std::size_t parity_class, const RowIndex& index, std::size_t code) = 0;
};

/// Values in units, and special elements of the open level in the order of coding.
struct LevelTargets {
  TargetRows* rows = nullptr;
  const std::uint8_t* special = nullptr;  ///< null: none
  const std::int32_t* codes = nullptr;    ///< of values that are final
};

/// A class of the open level, and which of its planes.
struct ClassRows {
  std::size_t parity_class = 0;
  bool later = false;
  std::size_t first = 0;  ///< of its rows
  std::size_t rows = 0;
  std::size_t columns = 0;

  ClassRows(const LevelAxes& axes, unsigned level, std::size_t c, bool late) : parity_class(c), later(late) {
    columns = axes.class_points(c, level, axes.rank - 1);
    std::size_t all = axes.exists(c, level) ? 1 : 0;
    for (std::size_t a = 0; a + 1 < axes.rank; ++a) all *= axes.class_points(c, level, a);
    rows = all / axes.planes();
    if (later) first = rows;
    if (later) rows = all - first;
  }
  template <class Grid>
  ClassRows(const Grid& grid, std::size_t c, bool late) : ClassRows(grid.axes(), grid.level(), c, late) {}
};

/// Where codes of the open level lie: number of a row's first point in the order of coding.
class CodePlaces {
 public:
  CodePlaces(const LevelAxes& axes, unsigned level) : given_(axes.given), planes_(axes.planes() - axes.given) {
    const CodedClasses classes(axes, level);
    std::size_t at = 0;
    for (std::size_t i = 0; i < classes.count; ++i) {
      const ClassRows rows(axes, level, classes.list[i], false);
      rows_[rows.parity_class] = rows.rows;
      columns_[rows.parity_class] = rows.columns;
      first_[rows.parity_class] = at;
      at += rows.rows * rows.columns;
    }
    plane_ = at;
  }
  template <class Grid>
  explicit CodePlaces(const Grid& grid) : CodePlaces(grid.axes(), grid.level()) {}
  std::size_t of(std::size_t parity_class, std::size_t row) const {
    return (row / rows_[parity_class] - given_) * plane_ + first_[parity_class] +
           row % rows_[parity_class] * columns_[parity_class];
  }
  std::size_t count() const { return plane_ * planes_; }

 private:
  std::size_t given_;
  std::size_t planes_;  ///< that are coded
  std::size_t plane_ = 0;
  std::array<std::size_t, kParityClasses> first_{};
  std::array<std::size_t, kParityClasses> rows_{};
  std::array<std::size_t, kParityClasses> columns_{};
};

/// How fits are made.
struct LevelsFitting {
  const kernels::StencilKernels& kernels;
  FittedParts parts;
  Effort effort = Effort::high;

  explicit LevelsFitting(const EncodeSpec& spec) : kernels(*spec.kernels), parts(spec.parts), effort(spec.effort) {}
};

/// Of a class one point in so many is a sample, but there are no fewer and no more than the limits.
inline constexpr std::size_t kPointsPerSample = 4;
struct SampleLimits {
  std::size_t least;
  std::size_t most;
};
inline constexpr std::size_t kShortest = 16;  // rows shorter than this count as this

inline std::size_t samples_of(const ClassRows& rows, const SampleLimits& limits) {
  return std::clamp(rows.rows * rows.columns / kPointsPerSample, limits.least, limits.most);
}

/// A place below `places` for a row: the fractional part of a multiple of the golden ratio.
inline std::uint64_t scattered_place(std::uint64_t places, std::uint64_t row) {
  return places * (row * UINT64_C(0x9E3779B97F4A7C15) >> 32) >> 32;
}

/// Columns of a row that are looked at, at most kernels::kSampleBlock.
inline std::size_t sampled_columns(const ClassRows& rows) { return std::min(rows.columns, kernels::kSampleBlock); }

/// The first of them.
inline std::size_t first_column(const ClassRows& rows, std::size_t row) {
  const std::size_t count = sampled_columns(rows);
  if (count == rows.columns) return 0;
  return static_cast<std::size_t>(scattered_place(rows.columns - count + 1, row));
}

inline std::size_t sampled_rows(const ClassRows& rows, std::size_t samples) {
  return std::min(rows.rows, std::max<std::size_t>(1, samples / std::max(sampled_columns(rows), kShortest)));
}

/// Calls visit(row) for rows spread over a class.
template <class Visit>
void for_sampled_rows(const ClassRows& rows, std::size_t samples, const Visit& visit) {
  const std::size_t wanted = sampled_rows(rows, samples);
  for (std::size_t i = 0; i < wanted; ++i)
    visit(rows.first + static_cast<std::size_t>(scattered_sample(rows.rows, wanted, i)));
}

/// The rows of a class that have samples, the first column of those in each, and how many there are in each, special
/// ones among them.
struct SampledRows {
  Vector<std::size_t> rows;
  Vector<std::size_t> first;
  std::size_t columns = 0;
};
inline SampledRows list_rows(const ClassRows& rows, const SampleLimits& limits) {
  SampledRows list;
  list.columns = sampled_columns(rows);
  if (rows.rows == 0) return list;
  for_sampled_rows(rows, samples_of(rows, limits), [&](std::size_t row) {
    list.rows.push_back(row);
    list.first.push_back(first_column(rows, row));
  });
  return list;
}

/// Which columns of a row are samples: side by side, without special ones.
struct SampledColumns {
  std::size_t first = 0;  ///< special or not
  std::size_t count = 0;
  bool gaps = false;
  std::array<std::uint32_t, kernels::kSampleBlock> listed;  // NOLINT: set when there are gaps

  /// `special` of the row; null: none.
  SampledColumns(const ClassRows& rows, std::size_t row, const std::uint8_t* special)
      : first(first_column(rows, row)), count(sampled_columns(rows)) {
    if (special == nullptr || std::find_if(special + first, special + first + count,
                                           [](std::uint8_t s) { return s != 0; }) == special + first + count)
      return;
    gaps = true;
    const std::size_t end = first + count;
    count = 0;
    for (std::size_t x = first; x < end; ++x)
      if (special[x] == 0) listed[count++] = static_cast<std::uint32_t>(x);
  }

  /// Calls visit(sample, value) for the columns of a row of values.
  template <class Value, class Visit>
  void each(const Value* row, const Visit& visit) const {
    if (gaps) {
      for (std::size_t s = 0; s < count; ++s) visit(s, row[listed[s]]);
    } else {
      for (std::size_t s = 0; s < count; ++s) visit(s, row[first + s]);
    }
  }
};

}  // namespace quern::codec::stencil

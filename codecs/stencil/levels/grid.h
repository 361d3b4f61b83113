// The working arrays of a chunk in levels: at every level, each parity class is an array of its own, so that taps of a
// row are contiguous rows of other classes. Rows of a run follow each other along the axis before the last; rows of all
// classes have the same pitch, and classes have rows beyond the ends of their runs, so that a tap lies as far from each
// row of a run. Encoder and decoder walk a chunk's levels through this one class.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "codecs/stencil/levels/axes.h"
#include "codecs/stencil/levels/small_values.h"
#include "codecs/stencil/levels/taps.h"
#include "kernels/stencil/cpu/stencil.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil {

/// What points beyond the grid are taken to be.
enum class Border : std::uint8_t {
  mirrored = 0,  ///< the points as far inside, same parity
  linear = 1,    ///< on the line through the two outermost points of the same parity
};

using RowIndex = std::array<std::size_t, kMaxAxes - 1>;  ///< along all axes but the last

/// Points of a class along each axis.
using ClassExtents = std::array<std::size_t, kMaxAxes>;

inline ClassExtents extents_of_class(const LevelAxes& axes, unsigned level, std::size_t parity_class) {
  ClassExtents extents{1, 1, 1, 1};
  for (std::size_t a = 0; a < axes.rank; ++a) extents[a] = axes.class_points(parity_class, level, a);
  return extents;
}
/// Indices of a row of a class, rows counted in C order.
inline RowIndex index_in_class(const ClassExtents& extents, std::size_t rank, std::size_t row) {
  RowIndex index{};
  for (std::size_t a = rank - 1; a-- > 0;) {
    index[a] = row % extents[a];
    row /= extents[a];
  }
  return index;
}

/// How many taps a list has, and how many pairs of one weight it begins with.
struct TapCount {
  std::size_t count = 0;
  std::size_t pairs = 0;

  /// The last two that were added are a pair.
  void pair_ends() {
    if (count == 2 * pairs + 2) ++pairs;
  }
};

/// Rows that a weighted sum is taken over, and the weights.
template <class Value, class Weight>
struct RowSources : TapCount {
  static constexpr std::size_t kMost = 2 * kMaxGroups * 8;  // pairs; two rows for each axis beyond the border
  std::array<const Value*, kMost> rows;                     // NOLINT: the first `count` are set
  std::array<Weight, kMost> weights;                        // NOLINT

  void add(const Value* row, Weight weight) {
    rows[count] = row;
    weights[count++] = weight;
  }
};
template <class Value>
using ValueSourcesOf = RowSources<Value, double>;
using ValueSources = ValueSourcesOf<double>;
template <class Value>
using MagnitudeSourcesOf = RowSources<kernels::MagnitudeOf<Value>, std::uint32_t>;

/// Taps of a class resolved for runs away from the border: for each the class it lies in, and its distance from the
/// row of the same index there.
template <class Weight>
struct PlannedTaps : TapCount {
  struct Entry {
    std::ptrdiff_t from_row = 0;
    Weight weight{};
    std::uint8_t tap_class = 0;
  };
  std::array<Entry, 2 * kMaxGroups> entries;  // NOLINT: the first `count` are set
};

/// Values are integers in binary64, or narrow: kernels::kMostNarrow.
template <class Value>
class LevelGridOf {
 public:
  using Magnitude = kernels::MagnitudeOf<Value>;
  using ValueSources = ValueSourcesOf<Value>;
  using MagnitudeSources = MagnitudeSourcesOf<Value>;
  using RowKernels = kernels::StencilRowKernels;
  /// One class at the open level.
  struct View {
    bool exists = false;
    std::size_t first = 0;  ///< of the buffers: column 0 of row 0
    std::size_t rows = 0;
    ClassExtents extents{1, 1, 1, 1};
    std::array<std::size_t, kMaxAxes> pitches{};  ///< elements from an index to the next
  };

  /// `networks`: with rows for what networks make of the points of the finest level.
  LevelGridOf(Arena& arena, const LevelAxes& axes, bool networks = false) : axes_(axes) {
    std::array<std::size_t, 2> sizes{};
    for (unsigned level = 0; level <= axes.top(); ++level) {
      lay_out(level);
      sizes[level & 1] = std::max(sizes[level & 1], size_);
    }
    if (networks) network_ = static_cast<std::ptrdiff_t>(sizes[0]);
    for (std::size_t i = 0; i < 2; ++i) {
      values_[i] = arena.take<Value>(sizes[i] + (i == 0 && networks ? sizes[0] : 0));
      magnitudes_[i] = arena.take<Magnitude>(sizes[i]);
    }
  }

  const LevelAxes& axes() const { return axes_; }
  unsigned level() const { return level_; }
  const View& view(std::size_t parity_class) const { return views_[parity_class]; }

  /// Opens the coarsest level, or after a level the next finer one, whose class 0 gets that level's points.
  void open(unsigned level, Border border, const RowKernels& kernels);

  Value* values(std::size_t parity_class, const RowIndex& row) {
    return values_[level_ & 1] + at(views_[parity_class], row);
  }
  Magnitude* magnitudes(std::size_t parity_class, const RowIndex& row) {
    return magnitudes_[level_ & 1] + at(views_[parity_class], row);
  }
  /// What a network makes of a row of the finest level: the tap of offset 0. It lies as far behind the row's values for
  /// every row.
  Value* network_row(std::size_t parity_class, const RowIndex& row) { return values(parity_class, row) + network_; }
  std::size_t run_axis() const { return stencil::run_axis(axes_); }
  std::size_t run_rows(std::size_t parity_class) const {
    return run_axis() < kMaxAxes ? views_[parity_class].extents[run_axis()] : 1;
  }
  /// Elements from a row of a run to the next, of any class.
  std::size_t row_pitch() const { return row_pitch_; }
  RowIndex index_of(std::size_t parity_class, std::size_t row) const {
    return index_in_class(views_[parity_class].extents, axes_.rank, row);
  }
  /// Sets the halos of a row that is complete.
  void finish_row(std::size_t parity_class, Value* values, Magnitude* magnitudes) {
    const RowEnds& ends = ends_[parity_class];
    for (std::size_t i = 0; i < ends.list.size(); ++i) {
      const typename RowEnds::End& end = ends.list[i];
      const auto value =
          static_cast<Value>(end.factors[0] * values[end.from[0]] + end.factors[1] * values[end.from[1]]);
      values[end.to] = value;
      magnitudes[end.to] = magnitudes[end.mirrored];
      small_.see_halo(value);
    }
  }
  /// Sets the rows beyond the ends of a run whose rows are complete; `first` of them.
  void finish_run(std::size_t parity_class, RowIndex first);

  /// Whether all values so far, halos among them, are small. Halos are checked here, rows where they are made.
  SmallValues<Value>& small() { return small_; }
  const SmallValues<Value>& small() const { return small_; }

  /// Rows and weights that predict a row. Runs that taps lie in are complete.
  void value_sources(std::size_t parity_class, const RowIndex& row, const GroupList& list, const GroupWeights& weights,
                     ValueSources& out) const;
  /// True when no tap of the row leaves the grid along an axis but those of its run and of itself.
  bool inside(const RowIndex& row) const {
    for (std::size_t a = 0; a + 1 < axes_.rank; ++a) {
      if (a == run_axis()) continue;
      if (!axes_.hierarchical(a)) {
        if (row[a] < 2 - axes_.given) return false;
      } else if (axes_.live(a, level_) && (row[a] == 0 || row[a] + 2 >= axes_.points(a, level_) / 2)) {
        return false;
      }
    }
    return true;
  }
  template <class Weight>
  void plan_tap(std::size_t parity_class, const Offset& offset, Weight weight, PlannedTaps<Weight>& out) const {
    const std::size_t c = tap_class(parity_class, offset);
    std::ptrdiff_t from_row = tap_step(parity_class, axes_.rank - 1, offset[axes_.rank - 1]) + network_from(offset);
    for (std::size_t a = 0; a + 1 < axes_.rank; ++a)
      from_row += tap_step(parity_class, a, offset[a]) * static_cast<std::ptrdiff_t>(views_[c].pitches[a]);
    out.entries[out.count++] = {from_row, weight, static_cast<std::uint8_t>(c)};
  }
  void plan_values(std::size_t parity_class, const GroupList& list, const GroupWeights& weights,
                   PlannedTaps<double>& out) const;
  void planned_sources(const RowIndex& row, const PlannedTaps<double>& taps, ValueSources& out) const {
    fill(row, taps, values_[level_ & 1], out);
  }
  void planned_sources(const RowIndex& row, const PlannedTaps<std::uint32_t>& taps, MagnitudeSources& out) const {
    fill(row, taps, magnitudes_[level_ & 1], out);
  }
  /// The row at an offset, beyond the border mirrored.
  const Value* value_row(std::size_t parity_class, const RowIndex& row, const Offset& offset) const {
    return values_[level_ & 1] + mirrored_at(parity_class, row, offset, true);
  }
  const Magnitude* magnitude_row(std::size_t parity_class, const RowIndex& row, const Offset& offset) const {
    return magnitudes_[level_ & 1] + mirrored_at(parity_class, row, offset, true);
  }
  /// The same, but in the row beyond its end where a run ends: as far from each row of a run, whether that is complete
  /// or not.
  const Value* run_value_row(std::size_t parity_class, const RowIndex& row, const Offset& offset) const {
    return values_[level_ & 1] + mirrored_at(parity_class, row, offset, false);
  }
  const Magnitude* run_magnitude_row(std::size_t parity_class, const RowIndex& row, const Offset& offset) const {
    return magnitudes_[level_ & 1] + mirrored_at(parity_class, row, offset, false);
  }

 private:
  static constexpr std::size_t kLeft = 1;   // columns before a row's first that taps look at; rows before a run's first
  static constexpr std::size_t kRight = 2;  // after the last
  static constexpr std::size_t kSlack = 2 * kernels::kStencilBlock;

  using Factor = std::conditional_t<std::is_same_v<Value, double>, double, std::int64_t>;
  /// What the halos of a class's rows are made from.
  struct RowEnds {
    struct End {
      std::ptrdiff_t to = 0;
      std::array<std::size_t, 2> from{};
      std::array<Factor, 2> factors{};
      std::size_t mirrored = 0;
    };
    std::array<End, kLeft + kRight> list;
  };

  std::size_t at(const View& view, const RowIndex& row) const {
    std::size_t place = view.first;
    for (std::size_t a = 0; a + 1 < axes_.rank; ++a) place += row[a] * view.pitches[a];
    return place;
  }
  void lay_out(unsigned level);
  RowEnds ends_of(std::size_t parity_class, std::size_t axis) const;
  void move_up(const std::array<View, kParityClasses>& from, const RowKernels& kernels);
  std::size_t tap_class(std::size_t parity_class, const Offset& offset) const {
    std::size_t c = 0;
    for (std::size_t a = 0; a < axes_.rank; ++a)
      c = c << 1 |
          ((axes_.parity(parity_class, a) + static_cast<unsigned>(offset[a])) & (axes_.hierarchical(a) ? 1u : 0u));
    return c;
  }
  /// Difference of indices along an axis of a point in its class and of a tap in its.
  int tap_step(std::size_t parity_class, std::size_t axis, int offset) const {
    if (!axes_.hierarchical(axis)) return offset;
    return (static_cast<int>(axes_.parity(parity_class, axis)) + offset) >> 1;
  }
  template <class Source, class Weight>
  void fill(const RowIndex& row, const PlannedTaps<Weight>& taps, const Source* base,
            RowSources<Source, Weight>& out) const {
    std::array<std::size_t, kParityClasses> rows{};
    for (std::size_t c = 0; c < kParityClasses; ++c)
      if (views_[c].exists) rows[c] = at(views_[c], row);
    for (std::size_t t = 0; t < taps.count; ++t) {
      out.rows[t] = base + static_cast<std::ptrdiff_t>(rows[taps.entries[t].tap_class]) + taps.entries[t].from_row;
      out.weights[t] = taps.entries[t].weight;
    }
    static_cast<TapCount&>(out) = taps;
  }
  std::ptrdiff_t network_from(const Offset& offset) const { return offset == Offset{} ? network_ : 0; }
  /// Index along an axis of the class that the tap lies in; may lie beyond it.
  std::ptrdiff_t tap_index(std::size_t parity_class, std::size_t axis, std::size_t index, int offset) const {
    if (!axes_.hierarchical(axis)) return std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(index) + offset, 0);
    return static_cast<std::ptrdiff_t>(index) + tap_step(parity_class, axis, offset);
  }
  /// Index of the same class that a place beyond the grid is mirrored to.
  std::size_t mirror(std::size_t parity_class, std::size_t axis, std::ptrdiff_t index) const {
    const auto last = static_cast<std::ptrdiff_t>(axes_.points(axis, level_)) - 1;
    if (last == 0) return 0;
    const auto odd = static_cast<std::ptrdiff_t>(axes_.parity(parity_class, axis));
    std::ptrdiff_t place = 2 * index + odd;
    while (place < 0 || place > last) place = place < 0 ? -place : 2 * last - place;
    return static_cast<std::size_t>((place - odd) / 2);
  }
  std::size_t mirrored_at(std::size_t parity_class, const RowIndex& row, const Offset& offset, bool along_run) const {
    const std::size_t c = tap_class(parity_class, offset);
    const View& view = views_[c];
    auto place = static_cast<std::ptrdiff_t>(view.first);
    for (std::size_t a = 0; a + 1 < axes_.rank; ++a) {
      std::ptrdiff_t i = tap_index(parity_class, a, row[a], offset[a]);
      if ((i < 0 || i >= static_cast<std::ptrdiff_t>(view.extents[a])) && (along_run || a != run_axis()))
        i = static_cast<std::ptrdiff_t>(mirror(c, a, i));
      place += i * static_cast<std::ptrdiff_t>(view.pitches[a]);
    }
    return static_cast<std::size_t>(place + tap_index(parity_class, axes_.rank - 1, 0, offset[axes_.rank - 1]));
  }
  /// Place in the buffers of the row that a tap lies in; false when it leaves the grid along an axis but those of its
  /// run and of its row.
  bool place_inside(std::size_t parity_class, const RowIndex& row, const Offset& offset, std::ptrdiff_t& place) const {
    const View& view = views_[tap_class(parity_class, offset)];
    place = static_cast<std::ptrdiff_t>(view.first) +
            tap_index(parity_class, axes_.rank - 1, 0, offset[axes_.rank - 1]) + network_from(offset);
    for (std::size_t a = 0; a + 1 < axes_.rank; ++a) {
      const std::ptrdiff_t i = tap_index(parity_class, a, row[a], offset[a]);
      if ((i < 0 || i >= static_cast<std::ptrdiff_t>(view.extents[a])) && a != run_axis()) return false;
      place += i * static_cast<std::ptrdiff_t>(view.pitches[a]);
    }
    return true;
  }
  void add_tap(std::size_t parity_class, const RowIndex& row, const Offset& offset, double weight,
               ValueSources& out) const;

  LevelAxes axes_;
  unsigned level_ = 0;
  Border border_ = Border::mirrored;
  SmallValues<Value> small_;
  std::size_t size_ = 0;
  std::size_t row_pitch_ = 0;
  std::ptrdiff_t network_ = 0;  ///< from the values of the finest level to its network's; 0: there are none
  std::array<RowEnds, kParityClasses> ends_;
  std::array<View, kParityClasses> views_{};
  std::array<Value*, 2> values_{};
  std::array<Magnitude*, 2> magnitudes_{};
};
using LevelGrid = LevelGridOf<double>;
extern template class LevelGridOf<double>;
extern template class LevelGridOf<std::int32_t>;

}  // namespace quern::codec::stencil

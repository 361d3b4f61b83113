// Layout of the classes of a level, the step from one level to the next, and rows beyond the border.
#include "codecs/stencil/levels_grid.h"

namespace quern::codec::stencil {
namespace {

/// A place beyond the border as a sum of one or two indices times factors.
struct Places {
  std::array<std::size_t, 2> index{};
  std::array<double, 2> factor{1, 0};
  std::size_t count = 1;
};

/// On the line through the two outermost of `extent` points.
Places on_line(std::ptrdiff_t index, std::size_t extent) {
  Places places;
  if (extent == 1) return places;
  const auto beyond = static_cast<double>(index < 0 ? -index : index - static_cast<std::ptrdiff_t>(extent) + 1);
  places.index = index < 0 ? std::array<std::size_t, 2>{0, 1} : std::array<std::size_t, 2>{extent - 1, extent - 2};
  places.factor = {1 + beyond, -beyond};
  places.count = 2;
  return places;
}

}  // namespace

void LevelGrid::lay_out(unsigned level) {
  level_ = level;
  std::size_t at = kLeft;
  for (std::size_t c = 0; c < kParityClasses; ++c) {
    View& view = views_[c];
    view = {};
    view.exists = axes_.exists(c, level);
    if (!view.exists) continue;
    view.rows = 1;
    for (std::size_t a = 0; a < axes_.rank; ++a) {
      view.extents[a] = axes_.class_points(c, level, a);
      if (a + 1 < axes_.rank) view.rows *= view.extents[a];
    }
    view.stride = kLeft + view.extents[axes_.rank - 1] + kRight;
    view.first = at;
    at += view.rows * view.stride;
  }
  size_ = at + kSlack;
}

void LevelGrid::open(unsigned level, Border border) {
  border_ = border;
  const std::array<View, kParityClasses> above = views_;
  lay_out(level);
  std::memset(values_[level & 1], 0, size_ * sizeof(double));
  std::memset(magnitudes_[level & 1], 0, size_ * sizeof(std::uint32_t));
  if (level < axes_.top()) move_up(above);
}

void LevelGrid::move_up(const std::array<View, kParityClasses>& from) {
  const std::size_t last = axes_.rank - 1;
  const unsigned other = (level_ & 1) ^ 1;
  const bool spread = axes_.live(last, level_ + 1);
  for (std::size_t c = 0; c < kParityClasses; ++c) {
    const View& view = from[c];
    if (!view.exists) continue;
    const std::size_t columns = view.extents[last];
    const std::size_t step = spread ? 2 : 1;
    for (std::size_t r = 0; r < view.rows; ++r) {
      std::array<std::size_t, kMaxAxes> index{};
      std::size_t rest = r;
      for (std::size_t a = last; a-- > 0; rest /= view.extents[a]) index[a] = rest % view.extents[a];
      std::size_t to = 0;
      for (std::size_t a = 0; a < last; ++a) {
        const std::size_t i = axes_.hierarchical(a) ? 2 * index[a] + axes_.parity(c, a) : index[a];
        to = to * views_[0].extents[a] + i;
      }
      const std::size_t begin = at(0, to) + axes_.parity(c, last);
      const std::size_t source = view.first + r * view.stride;
      for (std::size_t x = 0; x < columns; ++x) {
        values_[level_ & 1][begin + step * x] = values_[other][source + x];
        magnitudes_[level_ & 1][begin + step * x] = magnitudes_[other][source + x];
      }
    }
  }
  for (std::size_t r = 0; r < views_[0].rows; ++r) finish_row(0, r);
}

void LevelGrid::finish_row(std::size_t parity_class, std::size_t row) {
  const std::size_t last = axes_.rank - 1;
  double* const x = values(parity_class, row);
  std::uint32_t* const m = magnitudes(parity_class, row);
  const std::size_t columns = views_[parity_class].extents[last];
  for (const std::ptrdiff_t i :
       {std::ptrdiff_t{-1}, static_cast<std::ptrdiff_t>(columns), static_cast<std::ptrdiff_t>(columns) + 1}) {
    const std::size_t inside = mirror(parity_class, last, i);
    m[i] = m[inside];
    if (border_ == Border::mirrored) {
      x[i] = x[inside];
    } else {
      const Places places = on_line(i, columns);
      x[i] = places.count == 1 ? x[0] : places.factor[0] * x[places.index[0]] + places.factor[1] * x[places.index[1]];
    }
  }
}

void LevelGrid::add_tap(std::size_t parity_class, const RowIndex& row, const Offset& offset, double weight,
                        ValueSources& out) const {
  if (border_ == Border::mirrored) {
    out.add(value_row(parity_class, row, offset), weight);
    return;
  }
  const std::size_t c = tap_class(parity_class, offset);
  const View& view = views_[c];
  const std::size_t begin = out.count;
  std::array<std::size_t, 8> rows{};  // of the class, for each source that the tap becomes
  out.add(nullptr, weight);
  for (std::size_t a = 0; a + 1 < axes_.rank; ++a) {
    const std::ptrdiff_t i = tap_index(parity_class, a, row[a], offset[a]);
    Places places;
    places.index[0] = static_cast<std::size_t>(i);
    if (i < 0 || i >= static_cast<std::ptrdiff_t>(view.extents[a])) places = on_line(i, view.extents[a]);
    const std::size_t count = out.count - begin;
    for (std::size_t s = 0; s < count; ++s) {
      const std::size_t before = rows[s] * view.extents[a];
      const double w = out.weights[begin + s];
      rows[s] = before + places.index[0];
      out.weights[begin + s] = w * places.factor[0];
      if (places.count == 1) continue;
      rows[out.count - begin] = before + places.index[1];
      out.add(nullptr, w * places.factor[1]);
    }
  }
  const std::ptrdiff_t column = tap_index(parity_class, axes_.rank - 1, 0, offset[axes_.rank - 1]);
  for (std::size_t s = begin; s < out.count; ++s) out.rows[s] = values_[level_ & 1] + at(c, rows[s - begin]) + column;
}

namespace {

/// Calls visit(offset, weight) for every tap whose weight is not 0.
template <class Visit>
void for_taps(const GroupList& list, const GroupWeights& weights, const Visit& visit) {
  for (std::size_t g = 0; g < list.count; ++g) {
    if (weights[g] == 0) continue;
    const TapGroup& group = list.groups[g];
    visit(group.offset, weights[g]);
    if (!group.pair) continue;
    Offset opposite{};
    for (std::size_t a = 0; a < kMaxAxes; ++a) opposite[a] = static_cast<std::int8_t>(-group.offset[a]);
    visit(opposite, weights[g]);
  }
}

}  // namespace

void LevelGrid::value_sources(std::size_t parity_class, const RowIndex& row, const GroupList& list,
                              const GroupWeights& weights, ValueSources& out) const {
  out.count = 0;
  for_taps(list, weights,
           [&](const Offset& offset, double weight) { add_tap(parity_class, row, offset, weight, out); });
}

void LevelGrid::plan_values(std::size_t parity_class, const GroupList& list, const GroupWeights& weights,
                            PlannedTaps<double>& out) const {
  out.count = 0;
  for_taps(list, weights, [&](const Offset& offset, double weight) { plan_tap(parity_class, offset, weight, out); });
}

}  // namespace quern::codec::stencil

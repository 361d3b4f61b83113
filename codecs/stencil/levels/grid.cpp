// Layout of the classes of a level, the step from one level to the next, and rows beyond the border.
#include "codecs/stencil/levels/grid.h"

#include <cstring>

namespace quern::codec::stencil {
namespace {

/// A place beyond the border as a sum of one or two indices times factors.
struct Places {
  std::array<std::ptrdiff_t, 2> index{};
  std::array<double, 2> factor{1, 0};
  std::size_t count = 1;
};

/// On the line through the two outermost of `extent` points.
Places on_line(std::ptrdiff_t index, std::size_t extent) {
  Places places;
  if (extent == 1) return places;
  const auto last = static_cast<std::ptrdiff_t>(extent) - 1;
  const auto beyond = static_cast<double>(index < 0 ? -index : index - last);
  places.index = index < 0 ? std::array<std::ptrdiff_t, 2>{0, 1} : std::array<std::ptrdiff_t, 2>{last, last - 1};
  places.factor = {1 + beyond, -beyond};
  places.count = 2;
  return places;
}

}  // namespace

template <class Value>
void LevelGridOf<Value>::lay_out(unsigned level) {
  constexpr std::size_t kAligned = 8;        // elements that a vector of values has
  constexpr std::size_t kLongEnough = 16;    // rows, for their first columns to be aligned
  constexpr std::size_t kClassAligned = 16;  // elements that a vector of magnitudes has
  level_ = level;
  const std::size_t last = axes_.rank - 1;
  const std::size_t columns = axes_.class_points(0, level, last);  // no class has more
  row_pitch_ = kLeft + columns + kRight;
  if (columns >= kLongEnough) row_pitch_ = (row_pitch_ + kAligned - 1) / kAligned * kAligned;
  const bool beyond = run_axis() < kMaxAxes && axes_.live(run_axis(), level);
  std::size_t at = 0;
  for (std::size_t c = 0; c < kParityClasses; ++c) {
    View& view = views_[c];
    view = {};
    view.exists = axes_.exists(c, level);
    if (!view.exists) continue;
    view.rows = 1;
    for (std::size_t a = 0; a < axes_.rank; ++a) {
      view.extents[a] = axes_.class_points(c, level, a);
      if (a < last) view.rows *= view.extents[a];
    }
    view.pitches[last] = 1;
    std::size_t pitch = row_pitch_;
    for (std::size_t a = last; a-- > 0;) {
      view.pitches[a] = pitch;
      pitch *= view.extents[a] + (a == run_axis() && beyond ? kLeft + kRight : 0);
    }
    view.first = at + kClassAligned + (beyond ? kLeft * row_pitch_ : 0);
    // Kernels write whole blocks, up to one behind the last row.
    at = (view.first + pitch + kernels::kStencilBlock + kClassAligned - 1) / kClassAligned * kClassAligned;
  }
  size_ = at + kSlack;
}

template <class Value>
typename LevelGridOf<Value>::RowEnds LevelGridOf<Value>::ends_of(std::size_t parity_class, std::size_t axis) const {
  RowEnds ends;
  const std::size_t extent = views_[parity_class].extents[axis];
  for (std::size_t i = 0; i < ends.list.size(); ++i) {
    typename RowEnds::End& end = ends.list[i];
    end.to = i < kLeft ? -1 - static_cast<std::ptrdiff_t>(i) : static_cast<std::ptrdiff_t>(extent + i - kLeft);
    end.mirrored = mirror(parity_class, axis, end.to);
    Places places;
    if (border_ == Border::mirrored) {
      places.index[0] = static_cast<std::ptrdiff_t>(end.mirrored);
    } else {
      places = on_line(end.to, extent);
    }
    for (std::size_t p = 0; p < 2; ++p) {
      end.from[p] = static_cast<std::size_t>(places.index[p]);
      end.factors[p] = static_cast<Factor>(places.factor[p]);
    }
  }
  return ends;
}

template <class Value>
void LevelGridOf<Value>::open(unsigned level, Border border, const RowKernels& kernels) {
  border_ = border;
  small_.open_level();
  const std::array<View, kParityClasses> above = views_;
  lay_out(level);
  for (std::size_t c = 0; c < kParityClasses; ++c)
    if (views_[c].exists) ends_[c] = ends_of(c, axes_.rank - 1);
  if (level < axes_.top()) move_up(above, kernels);
}

template <class Value>
void LevelGridOf<Value>::move_up(const std::array<View, kParityClasses>& from, const RowKernels& kernels) {
  const std::size_t last = axes_.rank - 1;
  const unsigned other = (level_ & 1) ^ 1;
  const bool spread = axes_.live(last, level_ + 1);
  // Classes that differ in the parity along the last axis alone go together.
  for (std::size_t c = 0; c < kParityClasses; c += 2) {
    const View& view = from[c];
    if (!view.exists) continue;
    const View& odd = from[c + 1];
    const std::size_t columns = view.extents[last];
    const std::size_t pairs = spread ? odd.extents[last] : 0;
    for (std::size_t r = 0; r < view.rows; ++r) {
      RowIndex index{};
      std::size_t rest = r;
      for (std::size_t a = last; a-- > 0; rest /= view.extents[a]) index[a] = rest % view.extents[a];
      RowIndex to{};
      for (std::size_t a = 0; a < last; ++a)
        to[a] = axes_.hierarchical(a) ? 2 * index[a] + axes_.parity(c, a) : index[a];
      const std::size_t begin = at(views_[0], to);
      const std::size_t evens = at(view, index);
      Value* const values = values_[level_ & 1] + begin;
      Magnitude* const magnitudes = magnitudes_[level_ & 1] + begin;
      if (pairs > 0) {
        const std::size_t odds = at(odd, index);
        const kernels::ValueRowKernels<Value>& rows = kernels.template of<Value>();
        rows.interleave(values_[other] + evens, values_[other] + odds, pairs, values);
        rows.interleave_magnitudes(magnitudes_[other] + evens, magnitudes_[other] + odds, pairs, magnitudes);
      }
      if (columns > pairs) {
        values[2 * pairs] = values_[other][evens + pairs];
        magnitudes[2 * pairs] = magnitudes_[other][evens + pairs];
      }
      finish_row(0, values, magnitudes);
    }
  }
  for (std::size_t r = 0; r < views_[0].rows; r += run_rows(0)) finish_run(0, index_of(0, r));
}

template <class Value>
void LevelGridOf<Value>::finish_run(std::size_t parity_class, RowIndex first) {
  const std::size_t axis = run_axis();
  if (axis == kMaxAxes || !axes_.live(axis, level_)) return;
  first[axis] = 0;
  const std::size_t width = kLeft + views_[parity_class].extents[axes_.rank - 1] + kRight;
  Value* const x = values(parity_class, first) - kLeft;
  Magnitude* const m = magnitudes(parity_class, first) - kLeft;
  const auto pitch = static_cast<std::ptrdiff_t>(row_pitch_);
  for (const typename RowEnds::End& end : ends_of(parity_class, axis).list) {
    std::memcpy(m + end.to * pitch, m + end.mirrored * row_pitch_, width * sizeof(Magnitude));
    Value* const to = x + end.to * pitch;
    const Value* const near = x + end.from[0] * row_pitch_;
    if (end.factors[1] == 0) {
      std::memcpy(to, near, width * sizeof(Value));
    } else {
      const Value* const far = x + end.from[1] * row_pitch_;
      for (std::size_t i = 0; i < width; ++i)
        to[i] = static_cast<Value>(end.factors[0] * near[i] + end.factors[1] * far[i]);
      small_.see_halo(to, width);
    }
  }
}

template <class Value>
void LevelGridOf<Value>::add_tap(std::size_t parity_class, const RowIndex& row, const Offset& offset, double weight,
                                 ValueSources& out) const {
  std::ptrdiff_t place = 0;
  if (place_inside(parity_class, row, offset, place)) {
    out.add(values_[level_ & 1] + place, weight);
    return;
  }
  if (border_ == Border::mirrored) {
    out.add(run_value_row(parity_class, row, offset), weight);
    return;
  }
  const std::size_t c = tap_class(parity_class, offset);
  const View& view = views_[c];
  const std::size_t begin = out.count;
  std::array<std::ptrdiff_t, 8> places_of{};  // of the buffers, for each source that the tap becomes
  places_of[0] =
      static_cast<std::ptrdiff_t>(view.first) + tap_index(parity_class, axes_.rank - 1, 0, offset[axes_.rank - 1]);
  out.add(nullptr, weight);
  for (std::size_t a = 0; a + 1 < axes_.rank; ++a) {
    const std::ptrdiff_t i = tap_index(parity_class, a, row[a], offset[a]);
    Places places;
    places.index[0] = i;
    if ((i < 0 || i >= static_cast<std::ptrdiff_t>(view.extents[a])) && a != run_axis())
      places = on_line(i, view.extents[a]);
    const auto pitch = static_cast<std::ptrdiff_t>(view.pitches[a]);
    const std::size_t count = out.count - begin;
    for (std::size_t s = 0; s < count; ++s) {
      const std::ptrdiff_t before = places_of[s];
      const double w = out.weights[begin + s];
      places_of[s] = before + places.index[0] * pitch;
      out.weights[begin + s] = w * places.factor[0];
      if (places.count == 1) continue;
      places_of[out.count - begin] = before + places.index[1] * pitch;
      out.add(nullptr, w * places.factor[1]);
    }
  }
  for (std::size_t s = begin; s < out.count; ++s) out.rows[s] = values_[level_ & 1] + places_of[s - begin];
}

namespace {

/// Begins a list anew and calls visit(offset, weight), which adds to it, for every tap whose weight is not 0.
template <class Visit>
void for_taps(const GroupList& list, const GroupWeights& weights, TapCount& out, const Visit& visit) {
  out = {};
  for (std::size_t g = 0; g < list.count; ++g) {
    const TapGroup& group = list.groups[g];
    if (weights[g] == 0 || group.source != TapSource::points) continue;
    visit(group.offset, weights[g]);
    if (!group.pair) continue;
    Offset opposite{};
    for (std::size_t a = 0; a < kMaxAxes; ++a) opposite[a] = static_cast<std::int8_t>(-group.offset[a]);
    visit(opposite, weights[g]);
    out.pair_ends();
  }
}

}  // namespace

template <class Value>
void LevelGridOf<Value>::value_sources(std::size_t parity_class, const RowIndex& row, const GroupList& list,
                                       const GroupWeights& weights, ValueSources& out) const {
  for_taps(list, weights, out,
           [&](const Offset& offset, double weight) { add_tap(parity_class, row, offset, weight, out); });
}

template <class Value>
void LevelGridOf<Value>::plan_values(std::size_t parity_class, const GroupList& list, const GroupWeights& weights,
                                     PlannedTaps<double>& out) const {
  for_taps(list, weights, out,
           [&](const Offset& offset, double weight) { plan_tap(parity_class, offset, weight, out); });
}

template class LevelGridOf<double>;
template class LevelGridOf<std::int32_t>;

}  // namespace quern::codec::stencil

// Boxes of a sample, copied.
#include "codecs/stencil/plan/sample_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "codecs/stencil/elements.h"
#include "codecs/stencil/rules.h"
#include "libcompress/core/scattered_sample.h"

namespace quern::codec::stencil {
namespace {

/// The box at the array's origin that the first elements of it, in C order, cover: whole planes, or rows, or a part of
/// one row.
Shape covered(const Shape& array, std::uint64_t elems) {
  std::array<std::uint64_t, kMaxRank> extents{};
  std::uint64_t inner = array.elems();
  for (std::size_t a = 0; a < array.rank(); ++a) {
    inner /= array[a];
    extents[a] = std::clamp<std::uint64_t>(elems / inner, 1, array[a]);
    if (elems >= inner) elems = UINT64_MAX;  // what is covered of the axes behind it is all
  }
  return Shape::try_make({extents.data(), array.rank()}).value_or(Shape());
}

}  // namespace

ConstBox3 TrialArray::chunk(const ChunkGrid& grid, std::uint64_t i) const {
  return chunk_of_array(grid, i, values.data(), element_bytes, has_special ? special.data() : nullptr);
}

Shape trial_shape(const Shape& array, std::uint64_t sample_elems, std::uint64_t most) {
  const Shape whole = covered(array, sample_elems);
  std::array<std::uint64_t, kMaxRank> extents{};
  std::copy(whole.extents().begin(), whole.extents().end(), extents.begin());
  const auto elems = [&] {
    std::uint64_t n = 1;
    for (std::size_t a = 0; a < whole.rank(); ++a) n *= extents[a];
    return n;
  };
  while (elems() > most) {
    auto& longest = *std::max_element(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(whole.rank()));
    longest = (longest + 1) / 2;
  }
  return Shape::try_make({extents.data(), whole.rank()}).value_or(Shape());
}

Shape slab_shape(const Shape& array, std::uint64_t sample_elems, std::uint64_t most) {
  return covered(array, std::min(sample_elems, most));
}

namespace {

/// Strides of an array in C order.
std::array<std::uint64_t, kMaxRank> strides_of(const Shape& array) {
  std::array<std::uint64_t, kMaxRank> strides{};
  std::uint64_t stride = 1;
  for (std::size_t a = array.rank(); a-- > 0; stride *= array[a]) strides[a] = stride;
  return strides;
}

/// Where the trial box may lie.
class Places {
 public:
  static constexpr std::uint64_t kCount = 16;

  Places(const Shape& array, const Shape& whole, const Shape& box)
      : strides_(strides_of(array)), whole_(whole), box_(box) {}
  bool one() const { return whole_ == box_; }
  /// First element of place `i`.
  std::uint64_t origin(std::uint64_t i) const {
    std::uint64_t at = 0;
    for (std::size_t a = 0; a < box_.rank(); ++a)
      at += scattered_box_place(whole_[a] - box_[a] + 1, a, i) * strides_[a];
    return at;
  }

 private:
  std::array<std::uint64_t, kMaxRank> strides_;
  Shape whole_;
  Shape box_;
};

struct Activity {
  std::uint64_t bits = 0;  ///< about how many differences of neighbours take
  bool gaps = false;       ///< special elements are among them
};

/// Of some rows of the box at `first`.
template <class Element>
Result<Activity> activity(const PlanRequest& request, std::uint64_t first, const ConstBox3& place) {
  constexpr std::uint64_t kRows = 8;  // of each of two axes
  ConstBox3 rows = place;
  for (std::size_t a = 0; a < 2; ++a) {
    if (place.extents[a] <= kRows) continue;
    rows.strides[a] *= place.extents[a] / kRows;
    rows.extents[a] = kRows;
  }
  AlignedBuffer room;
  QUERN_RETURN_IF_ERROR(room.resize(rows.elems() * sizeof(typename Element::Bits)));
  QUERN_ASSIGN_OR_RETURN(const ConstBox3 box, request.sample->look(first, rows, room.data(), nullptr));
  const double inverse = 1 / (2 * request.bound.value);
  Activity found{1, box.data == room.data()};
  for (std::uint64_t r = 0; r < rows.extents[0] * rows.extents[1]; ++r) {
    const auto* const row = static_cast<const typename Element::Bits*>(box.data) +
                            r / rows.extents[1] * box.strides[0] + r % rows.extents[1] * box.strides[1];
    for (std::uint64_t x = 1; x < rows.extents[2]; ++x) {
      found.bits += difference_bits(Element::value(row[x]), Element::value(row[x - 1]), inverse);
    }
  }
  return found;
}

/// The place that stands for all: about half of all bits lie in boxes that take no more than this one. Sets `gaps`
/// where one of those that were looked at has special elements.
Result<std::uint64_t> typical_place(const PlanRequest& request, const Places& places, const ConstBox3& place,
                                    bool& gaps) {
  if (places.one()) return places.origin(0);
  std::array<std::uint64_t, Places::kCount> bits{};
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < Places::kCount; ++i) {
    QUERN_ASSIGN_OR_RETURN(const Activity found, with_element(request.dtype, [&](auto element) {
                             return activity<decltype(element)>(request, places.origin(i), place);
                           }));
    bits[i] = found.bits;
    sum += found.bits;
    gaps = gaps || found.gaps;
  }
  std::array<std::uint64_t, Places::kCount> order{};
  for (std::uint64_t i = 0; i < Places::kCount; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) { return bits[a] < bits[b]; });
  std::uint64_t below = 0;
  for (const std::uint64_t i : order) {
    below += bits[i];
    if (2 * below >= sum) return places.origin(i);
  }
  return places.origin(0);
}

}  // namespace

Result<bool> rows_go_on(const PlanRequest& request) {
  constexpr std::uint64_t kMostEnds = 64;
  const std::uint64_t columns = request.shape[request.shape.rank() - 1];
  const std::uint64_t rows = request.sample->elems() / columns;
  if (columns < 2 || rows < 2) return false;
  const std::uint64_t ends = std::min(rows - 1, kMostEnds);
  // Two elements before the end of a row, two behind it.
  ConstBox3 place;
  place.extents = {1, 1, 4};
  std::array<double, 4> room{};
  std::uint64_t within = 0;
  std::uint64_t across = 0;
  const double inverse = 1 / (2 * request.bound.value);
  for (std::uint64_t i = 0; i < ends; ++i) {
    const std::uint64_t row = scattered_sample(rows - 1, ends, i);
    QUERN_ASSIGN_OR_RETURN(const ConstBox3 box,
                           request.sample->look((row + 1) * columns - 2, place, room.data(), nullptr));
    with_element(request.dtype, [&](auto element) {
      using Element = decltype(element);
      const auto* const x = static_cast<const typename Element::Bits*>(box.data);
      const auto bits = [&](std::size_t k) {
        return difference_bits(Element::value(x[k]), Element::value(x[k + 1]), inverse);
      };
      within += bits(0) + bits(2);
      across += 2 * bits(1);
    });
  }
  return across <= within + 4 * ends;
}

Result<TrialArray> take_whole_array(const PlanRequest& request) {
  TrialArray whole;
  whole.shape = request.shape;
  whole.element_bytes = dtype_bytes(request.dtype);
  const std::size_t rank = request.shape.rank();
  const std::uint64_t elems = request.shape.elems();
  QUERN_RETURN_IF_ERROR(whole.values.resize(elems * whole.element_bytes));
  QUERN_RETURN_IF_ERROR(whole.special.resize(elems));
  ConstBox3 place;
  place.extents = {1, rank > 1 ? request.shape[rank - 2] : 1, rank > 0 ? request.shape[rank - 1] : 1};
  place.extents[0] = elems / (place.extents[1] * place.extents[2]);
  place.strides = {place.extents[1] * place.extents[2], place.extents[2]};
  QUERN_ASSIGN_OR_RETURN(const ConstBox3 box,
                         request.sample->look(0, place, whole.values.data(), whole.special.data()));
  if (box.data != whole.values.data()) std::memcpy(whole.values.data(), box.data, elems * whole.element_bytes);
  whole.has_special = whole.gaps = box.special != nullptr;
  if (!whole.has_special) whole.special = AlignedBuffer();
  return whole;
}

Result<TrialArray> take_trial_array(const PlanRequest& request, const Shape& shape,
                                    std::optional<std::uint64_t> number) {
  TrialArray trial;
  trial.shape = shape;
  trial.element_bytes = dtype_bytes(request.dtype);
  const Places places(request.shape, covered(request.shape, request.sample->elems()), shape);
  const std::size_t rank = shape.rank();
  const std::size_t bytes = dtype_bytes(request.dtype);
  QUERN_RETURN_IF_ERROR(trial.values.resize(shape.elems() * bytes));
  QUERN_RETURN_IF_ERROR(trial.special.resize(shape.elems()));
  // The last three axes are looked at together.
  ConstBox3 place;
  const auto strides = strides_of(request.shape);
  for (std::size_t a = rank; a-- > 0;) {
    const std::size_t from_end = rank - 1 - a;
    if (from_end < 3) place.extents[2 - from_end] = shape[a];
    if (from_end == 1 || from_end == 2) place.strides[2 - from_end] = strides[a];
  }
  std::uint64_t origin = 0;
  if (number) {
    origin = places.origin(*number);
  } else {
    QUERN_ASSIGN_OR_RETURN(origin, typical_place(request, places, place, trial.gaps));
  }
  const std::size_t outer_axes = rank > 3 ? rank - 3 : 0;
  const std::uint64_t boxes = shape.elems() / place.elems();
  AlignedBuffer room;
  AlignedBuffer special_room;
  QUERN_RETURN_IF_ERROR(room.resize(place.elems() * bytes));
  QUERN_RETURN_IF_ERROR(special_room.resize(place.elems()));
  const std::uint64_t columns = place.extents[2];
  for (std::uint64_t b = 0; b < boxes; ++b) {
    std::uint64_t first = origin;
    std::uint64_t rest = b;
    for (std::size_t a = outer_axes; a-- > 0; rest /= shape[a]) first += rest % shape[a] * strides[a];
    QUERN_ASSIGN_OR_RETURN(const ConstBox3 box, request.sample->look(first, place, room.data(), special_room.data()));
    if (box.special != nullptr && !trial.has_special) {
      std::memset(trial.special.data(), 0, shape.elems());
      trial.has_special = true;
      trial.gaps = true;
    }
    for (std::uint64_t r = 0; r < place.extents[0] * place.extents[1]; ++r) {
      const std::uint64_t i = r / place.extents[1];
      const std::uint64_t j = r % place.extents[1];
      const std::uint64_t at = b * place.elems() + r * columns;
      std::memcpy(trial.values.data() + at * bytes,
                  static_cast<const std::uint8_t*>(box.data) + (i * box.strides[0] + j * box.strides[1]) * bytes,
                  columns * bytes);
      if (box.special == nullptr) continue;
      std::memcpy(trial.special.data() + at, box.special + i * box.special_strides[0] + j * box.special_strides[1],
                  columns);
    }
  }
  return trial;
}

}  // namespace quern::codec::stencil

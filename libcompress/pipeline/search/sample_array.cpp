// Boxes copied, planes pointed at.
#include "libcompress/pipeline/search/sample_array.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "libcompress/core/scattered_sample.h"

namespace quern {
namespace {

constexpr std::uint64_t kBoxes = 4;

using Extents = std::array<std::uint64_t, kMaxRank>;

std::size_t longest_axis(const Extents& box, std::size_t rank) {
  return static_cast<std::size_t>(std::max_element(box.begin(), box.begin() + static_cast<std::ptrdiff_t>(rank)) -
                                  box.begin());
}

/// Of a box in the array of at most `elems` elements: the longest axes are halved, the last of them as far as it takes.
Extents box_extents(const Shape& array, std::uint64_t elems) {
  Extents box{};
  std::copy(array.extents().begin(), array.extents().end(), box.begin());
  for (std::uint64_t n = array.elems(); n > elems;) {
    auto& longest = box[longest_axis(box, array.rank())];
    n /= longest;
    longest = n * ((longest + 1) / 2) > elems ? (longest + 1) / 2 : elems / n;
    n *= longest;
  }
  return box;
}

/// An array as `count` planes of equal shape: as many trailing axes as have at most `most` elements.
struct Planes {
  std::size_t axis = 0;  ///< planes are made of the axes behind this one
  std::uint64_t count = 1;
  std::uint64_t elems = 1;

  Planes(const Shape& shape, std::uint64_t most) {
    elems = shape.elems();
    if (shape.rank() == 0) return;
    for (axis = 0; axis < shape.rank(); ++axis) {
      elems /= shape[axis];
      count *= shape[axis];
      if (elems <= most) break;
    }
    axis = std::min(axis, shape.rank() - 1);
  }

  Result<Shape> shape_of(const Shape& whole, std::uint64_t planes) const {
    Vector<std::uint64_t> extents{planes};
    for (std::size_t a = axis + 1; a < whole.rank(); ++a) extents.push_back(whole[a]);
    return Shape::make(extents);
  }
};

}  // namespace

Result<SampleArray> make_sample_array(const ArrayView& array, std::uint64_t elems) {
  const std::size_t rank = array.shape.rank();
  const Extents box = box_extents(array.shape, elems / kBoxes);
  const std::size_t along = longest_axis(box, rank);
  Extents extents = box;
  extents[along] *= kBoxes;
  SampleArray sample;
  sample.view.dtype = array.dtype;
  QUERN_ASSIGN_OR_RETURN(sample.view.shape, Shape::make({extents.data(), rank}));
  const std::size_t element_bytes = dtype_bytes(array.dtype);
  QUERN_RETURN_IF_ERROR(sample.memory.resize(sample.view.shape.elems() * element_bytes));
  Extents from_strides{};
  Extents to_strides{};
  for (std::uint64_t a = rank, from = 1, to = 1; a-- > 0; from *= array.shape[a], to *= extents[a]) {
    from_strides[a] = from;
    to_strides[a] = to;
  }
  const std::uint64_t columns = box[rank - 1];
  const std::uint64_t rows = sample.view.shape.elems() / kBoxes / columns;
  for (std::uint64_t i = 0; i < kBoxes; ++i) {
    std::uint64_t origin = 0;
    for (std::size_t a = 0; a < rank; ++a)
      origin += scattered_box_place(array.shape[a] - box[a] + 1, a, i) * from_strides[a];
    for (std::uint64_t r = 0; r < rows; ++r) {
      std::uint64_t from = origin;
      std::uint64_t to = i * box[along] * to_strides[along];
      std::uint64_t rest = r;
      for (std::size_t a = rank - 1; a-- > 0; rest /= box[a]) {
        from += rest % box[a] * from_strides[a];
        to += rest % box[a] * to_strides[a];
      }
      std::memcpy(sample.memory.data() + to * element_bytes,
                  static_cast<const std::uint8_t*>(array.data) + from * element_bytes, columns * element_bytes);
    }
  }
  sample.view.data = sample.memory.data();
  return sample;
}

Result<ArrayView> leading_part(const ArrayView& array, std::uint64_t elems) {
  if (array.elems() <= elems) return array;
  const Planes planes(array.shape, elems);
  ArrayView part = array;
  QUERN_ASSIGN_OR_RETURN(
      part.shape, planes.shape_of(array.shape, std::clamp<std::uint64_t>(elems / planes.elems, 1, planes.count)));
  return part;
}

}  // namespace quern

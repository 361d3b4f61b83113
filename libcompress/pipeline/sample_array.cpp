// Planes, copied or pointed at.
#include "libcompress/pipeline/sample_array.h"

#include <algorithm>
#include <cstring>

#include "libcompress/core/scattered_sample.h"

namespace quern {
namespace {

constexpr std::uint64_t kRuns = 4;

/// An array as `count` planes of equal shape: the trailing axes of which `wanted` planes still fit.
struct Planes {
  std::size_t axis = 0;  ///< planes are made of the axes behind this one
  std::uint64_t count = 1;
  std::uint64_t elems = 1;

  Planes(const Shape& shape, std::uint64_t elems_wanted, std::uint64_t wanted) {
    elems = shape.elems();
    if (shape.rank() == 0) return;
    for (axis = 0; axis < shape.rank(); ++axis) {
      elems /= shape[axis];
      count *= shape[axis];
      if (elems * wanted <= elems_wanted) break;
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
  const Planes planes(array.shape, elems, 2 * kRuns);
  const std::uint64_t runs = std::min(kRuns, planes.count);
  const std::uint64_t run = std::clamp<std::uint64_t>(elems / runs / planes.elems, 1, planes.count / runs);
  SampleArray sample;
  sample.view.dtype = array.dtype;
  QUERN_ASSIGN_OR_RETURN(sample.view.shape, planes.shape_of(array.shape, runs * run));
  const std::uint64_t run_bytes = run * planes.elems * dtype_bytes(array.dtype);
  QUERN_RETURN_IF_ERROR(sample.memory.resize(runs * run_bytes));
  // Each run begins at another place of its part: as many places as the part has more planes than the run.
  const std::uint64_t part = planes.count / runs;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const std::uint64_t places = runs * (part - run + 1);
    const std::uint64_t place = scattered_sample(places, runs, i) % (part - run + 1);
    const std::uint64_t first = (i * part + place) * planes.elems * dtype_bytes(array.dtype);
    std::memcpy(sample.memory.data() + i * run_bytes, static_cast<const std::uint8_t*>(array.data) + first, run_bytes);
  }
  sample.view.data = sample.memory.data();
  return sample;
}

Result<ArrayView> leading_part(const ArrayView& array, std::uint64_t elems) {
  if (array.elems() <= elems) return array;
  const Planes planes(array.shape, elems, 1);
  ArrayView part = array;
  QUERN_ASSIGN_OR_RETURN(
      part.shape, planes.shape_of(array.shape, std::clamp<std::uint64_t>(elems / planes.elems, 1, planes.count)));
  return part;
}

}  // namespace quern

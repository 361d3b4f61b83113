// Memory that the kernels' walk over a mask needs, from the caller's allocator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "kernels/mask/walk.h"

namespace quern::mask {

class WalkMemory {
 public:
  explicit WalkMemory(const kernels::MaskShape& shape) : WalkMemory(kernels::MaskWalkSizes(shape)) {}
  kernels::MaskWalkMemory get() { return {states_.data(), copied_.data(), plane_.data(), open_.data()}; }

 private:
  explicit WalkMemory(const kernels::MaskWalkSizes& sizes)
      : states_(sizes.blocks), copied_(sizes.blocks), plane_(sizes.plane), open_(sizes.open) {}

  Vector<std::uint8_t> states_;
  Vector<std::uint8_t> copied_;
  Vector<std::uint8_t> plane_;
  Vector<std::uint64_t> open_;
};

/// Shape of the stored form of a mask that is not empty: its planes chosen among its own and the views, its reference.
inline kernels::MaskShape encoding_shape(const Extents& extents, std::span<const kernels::MaskView> views,
                                         std::span<const std::uint8_t> classes, std::size_t specials,
                                         std::size_t verbatim) {
  kernels::MaskPlanes planes(extents);
  Vector<std::uint64_t> hashes(std::max(extents[0], views.empty() ? 0 : kernels::most_view_planes(planes.cells)));
  if (!views.empty()) {
    Vector<std::uint64_t> bits(planes.cells / 64 + 2);
    planes = kernels::best_planes(classes.data(), planes, views, bits.data(), hashes.data());
  }
  kernels::MaskShape shape(planes);
  shape.alphabet = {static_cast<unsigned>(specials), verbatim != 0};
  shape.reference = kernels::best_reference(classes.data(), planes, hashes.data());
  return shape;
}

/// Writes what says that planes are not those of the box.
template <class Sink>
void put_view_of(const kernels::MaskPlanes& planes, const Extents& extents, Sink& sink) {
  const kernels::MaskPlanes own(extents);
  if (planes == own) return;
  kernels::put_view(planes, own, [&](std::uint8_t byte) { sink.put(byte); });
}

}  // namespace quern::mask

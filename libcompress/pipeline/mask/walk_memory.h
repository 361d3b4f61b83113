// Memory that the kernels' walk over a mask needs, from the caller's allocator.
#pragma once

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

/// Shape of the stored form of a mask that is not empty, its reference chosen.
inline kernels::MaskShape encoding_shape(const Extents& extents, std::span<const std::uint8_t> classes,
                                         std::size_t specials, std::size_t verbatim) {
  kernels::MaskShape shape(extents);
  shape.alphabet = {static_cast<unsigned>(specials), verbatim != 0};
  Vector<std::uint64_t> hashes(extents[0] < 3 ? 0 : extents[0]);
  shape.reference = kernels::best_reference(classes.data(), extents, hashes.data());
  return shape;
}

}  // namespace quern::mask

// A part of a chunk that choices are made on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <quern/codec.h>

#include "codecs/stencil/levels/form.h"

namespace quern::codec::stencil {

/// The middle of a box: its longest axis halved until there are at most `most` elements. Of an axis that is split the
/// outer one is halved; none becomes shorter than `shortest`, so that a thin box may stay larger.
inline ConstBox3 middle_box(const ConstBox3& in, const LevelsForm& form, std::size_t element_bytes, std::uint64_t most,
                            std::uint64_t shortest) {
  ConstBox3 box = in;
  std::array<std::uint64_t, 3> begin{0, 0, 0};
  const auto unit = [&](std::size_t a) { return form.inner_of(a, in.extents[a]); };
  const auto points = [&](std::size_t a) { return box.extents[a] / unit(a); };
  while (box.elems() > most) {
    std::size_t longest = 0;
    for (std::size_t a = 1; a < 3; ++a)
      if (points(a) > points(longest)) longest = a;
    if (points(longest) / 2 < shortest) break;
    const std::uint64_t half = points(longest) / 2 * unit(longest);
    begin[longest] += (box.extents[longest] - half) / unit(longest) / 2 * unit(longest);
    box.extents[longest] = half;
  }
  const std::uint64_t at = begin[0] * in.strides[0] + begin[1] * in.strides[1] + begin[2];
  box.data = static_cast<const std::uint8_t*>(in.data) + at * element_bytes;
  if (in.special != nullptr)
    box.special = in.special + begin[0] * in.special_strides[0] + begin[1] * in.special_strides[1] + begin[2];
  return box;
}

}  // namespace quern::codec::stencil

// The points of a coarse level, copied from a box of the array.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <quern/codec.h>

namespace quern {

/// Copies the level's points of a box whose elements lie in C order at `from`.
inline void pick_points(const std::uint8_t* from, const std::array<std::uint64_t, 3>& extents, const LevelForm& form,
                        std::size_t element_bytes, const MutableBox3& to) {
  auto* const out = static_cast<std::uint8_t*>(to.data);
  for (std::uint64_t i = 0; i < to.extents[0]; ++i) {
    for (std::uint64_t j = 0; j < to.extents[1]; ++j) {
      const std::uint64_t row = (form.axes[0].place(i) * extents[1] + form.axes[1].place(j)) * extents[2];
      std::uint8_t* at = out + (i * to.strides[0] + j * to.strides[1]) * element_bytes;
      for (std::uint64_t x = 0; x < to.extents[2]; ++x, at += element_bytes)
        std::memcpy(at, from + (row + form.axes[2].place(x)) * element_bytes, element_bytes);
    }
  }
}

}  // namespace quern

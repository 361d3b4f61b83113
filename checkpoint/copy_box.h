// Moving a box of elements from one contiguous box to another.
#pragma once

#include <cstdint>
#include <span>

#include <quern/shape.h>

namespace quern::checkpoint {

/// The box that two boxes of equal rank share; of extent 0 on some axis where they share nothing.
Box intersection(const Box& a, const Box& b);

/// Copies the elements of `common` from `source`, the contiguous values of the box `from`, to `target`, those of the
/// box `to`. `common` lies in both. Runs of whole lines are moved at once where both boxes have them so.
void copy_box(std::size_t element, const Box& common, const Box& from, std::span<const std::uint8_t> source,
              const Box& to, std::span<std::uint8_t> target);

}  // namespace quern::checkpoint

// Boxes of elements, line by line.
#include "checkpoint/copy_box.h"

#include <algorithm>
#include <cstring>

namespace quern::checkpoint {
namespace {

std::uint64_t extent(const Box& box, std::size_t axis) { return box.end[axis] - box.begin[axis]; }

/// Elements from the begin of `box` to the place `at`, its values being contiguous.
std::uint64_t index_in(const Box& box, const std::array<std::uint64_t, kMaxRank>& at) {
  std::uint64_t index = 0;
  for (std::size_t a = 0; a < box.rank; ++a) index = index * extent(box, a) + (at[a] - box.begin[a]);
  return index;
}

}  // namespace

Box intersection(const Box& a, const Box& b) {
  Box out;
  out.rank = a.rank;
  for (std::size_t i = 0; i < a.rank; ++i) {
    out.begin[i] = std::max(a.begin[i], b.begin[i]);
    out.end[i] = std::max(out.begin[i], std::min(a.end[i], b.end[i]));
  }
  return out;
}

void copy_box(std::size_t element, const Box& common, const Box& from, std::span<const std::uint8_t> source,
              const Box& to, std::span<std::uint8_t> target) {
  const std::size_t rank = common.rank;
  for (std::size_t a = 0; a < rank; ++a)
    if (extent(common, a) == 0) return;
  // Axes behind `outer` are whole in both boxes: with the axis `outer` they are one run.
  std::size_t outer = rank == 0 ? 0 : rank - 1;
  while (outer > 0 && extent(common, outer) == extent(from, outer) && extent(common, outer) == extent(to, outer))
    --outer;
  std::size_t run = element;
  for (std::size_t a = outer; a < rank; ++a) run *= static_cast<std::size_t>(extent(common, a));
  auto at = common.begin;
  for (;;) {
    std::memcpy(target.data() + static_cast<std::size_t>(index_in(to, at)) * element,
                source.data() + static_cast<std::size_t>(index_in(from, at)) * element, run);
    std::size_t a = outer;
    while (a > 0) {
      if (++at[a - 1] < common.end[a - 1]) break;
      at[a - 1] = common.begin[a - 1];
      --a;
    }
    if (a == 0) return;
  }
}

}  // namespace quern::checkpoint

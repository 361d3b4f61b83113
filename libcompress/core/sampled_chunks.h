// Whole chunks of an array that a plan's sample holds: what plans try encodings on.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

/// Calls visit(box), which returns a Status, for at most `most` chunks spread evenly over the grid, those that the
/// sample does not hold left out; where it holds none of these, for the first ones that it does hold. How many there
/// were. May throw std::bad_alloc.
template <class Visit>
Result<std::uint64_t> for_sampled_chunks(const PlanRequest& request, const ChunkGrid& grid, std::uint64_t most,
                                         const Visit& visit) {
  const auto counts = grid.counts();
  const std::uint64_t chunks = counts[0] * counts[1] * counts[2];
  const auto elems = static_cast<std::size_t>(grid.chunk[0] * grid.chunk[1] * grid.chunk[2]);
  Vector<std::uint8_t> room(elems * dtype_bytes(request.dtype)), special(elems);
  most = std::min(chunks, most);
  const auto visit_if_held = [&](std::uint64_t n) -> Result<bool> {
    const std::array<std::uint64_t, 3> number{n / (counts[1] * counts[2]), n / counts[2] % counts[1], n % counts[2]};
    ConstBox3 place;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    for (std::size_t a = 0; a < 3; ++a) {
      const std::uint64_t begin = number[a] * grid.chunk[a];
      place.extents[a] = std::min(grid.chunk[a], grid.extents[a] - begin);
      first = first * grid.extents[a] + begin;
      last = last * grid.extents[a] + begin + place.extents[a] - 1;
    }
    if (last >= request.sample->elems()) return false;
    place.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
    QUERN_ASSIGN_OR_RETURN(const ConstBox3 box, request.sample->look(first, place, room.data(), special.data()));
    QUERN_RETURN_IF_ERROR(visit(box));
    return true;
  };
  std::uint64_t visited = 0;
  for (std::uint64_t i = 0; i < most; ++i) {
    QUERN_ASSIGN_OR_RETURN(const bool held, visit_if_held((2 * i + 1) * chunks / (2 * most)));
    visited += held ? 1 : 0;
  }
  if (visited > 0) return visited;
  // The sample is a beginning of the array, and a chunk ends behind those before it.
  for (; visited < most; ++visited) {
    QUERN_ASSIGN_OR_RETURN(const bool held, visit_if_held(visited));
    if (!held) break;
  }
  return visited;
}

}  // namespace quern

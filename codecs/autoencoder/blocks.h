// How an array is cut: into chunks, and those into blocks, which predictors describe one by one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <quern/array.h>
#include <quern/codec.h>

#include "libcompress/core/last_axes.h"

namespace quern::codec::autoencoder {

using Extents = std::array<std::uint64_t, 3>;

/// Blocks where no model says otherwise: cubes of 8 for three axes and more, squares of 16 for two, rows of 256.
inline Extents usual_block(const Shape& shape) {
  if (shape.rank() >= 3) return {8, 8, 8};
  if (shape.rank() == 2) return {1, 16, 16};
  return {1, 1, 256};
}

/// Chunks of at most kChunkElems elements where blocks let them: the longest axis is halved, and ends with a block.
inline constexpr std::uint64_t kChunkElems = std::uint64_t{1} << 20;
inline ChunkGrid make_grid(const Shape& shape, const Extents& block) {
  ChunkGrid grid;
  grid.extents = last_three_axes(shape);
  for (std::size_t a = 0; a < 3; ++a) grid.chunk[a] = std::max<std::uint64_t>(grid.extents[a], 1);
  const auto blocks = [&](std::size_t a) { return (grid.chunk[a] + block[a] - 1) / block[a]; };
  const auto elems = [&] { return grid.chunk[0] * grid.chunk[1] * grid.chunk[2]; };
  while (elems() > kChunkElems) {
    std::size_t longest = 0;
    for (std::size_t a = 1; a < 3; ++a)
      if (blocks(a) > blocks(longest)) longest = a;
    if (blocks(longest) == 1) break;
    grid.chunk[longest] = (blocks(longest) + 1) / 2 * block[longest];
  }
  return grid;
}

/// A block's place in its chunk; at upper ends it may be smaller than others.
struct Block {
  Extents begin{};
  Extents extents{1, 1, 1};

  std::size_t elems() const { return static_cast<std::size_t>(extents[0] * extents[1] * extents[2]); }
};

/// The blocks of a chunk, in C order.
struct BlockGrid {
  BlockGrid(const Extents& chunk_extents, const Extents& block_extents) : chunk(chunk_extents), block(block_extents) {
    for (std::size_t a = 0; a < 3; ++a) counts[a] = (chunk[a] + block[a] - 1) / block[a];
  }
  std::size_t count() const { return static_cast<std::size_t>(counts[0] * counts[1] * counts[2]); }
  Block at(std::size_t number) const {
    const Extents place{number / (counts[1] * counts[2]), number / counts[2] % counts[1], number % counts[2]};
    Block out;
    for (std::size_t a = 0; a < 3; ++a) {
      out.begin[a] = place[a] * block[a];
      out.extents[a] = std::min(block[a], chunk[a] - out.begin[a]);
    }
    return out;
  }

  Extents chunk;
  Extents block;
  Extents counts{};
};

/// Calls f(place in the chunk, number in the block) for each element of a block, in C order.
template <class F>
void for_each_element(const Block& block, const F& f) {
  std::size_t i = 0;
  for (std::uint64_t z = 0; z < block.extents[0]; ++z)
    for (std::uint64_t y = 0; y < block.extents[1]; ++y)
      for (std::uint64_t x = 0; x < block.extents[2]; ++x)
        f(Extents{block.begin[0] + z, block.begin[1] + y, block.begin[2] + x}, i++);
}

/// Offset of an element of a box.
template <class Box>
std::uint64_t element_offset(const Box& box, const Extents& at) {
  return at[0] * box.strides[0] + at[1] * box.strides[1] + at[2];
}
template <class Box>
bool is_special(const Box& box, const Extents& at) {
  return box.special != nullptr &&
         box.special[at[0] * box.special_strides[0] + at[1] * box.special_strides[1] + at[2]] != 0;
}

}  // namespace quern::codec::autoencoder

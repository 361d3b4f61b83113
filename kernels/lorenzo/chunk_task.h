// What a chunk kernel is told: plain data shared by every execution model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/common/chunk_box.h"
#include "kernels/common/element_type.h"
#include "kernels/common/quantizers.h"
#include "kernels/lorenzo/tile.h"

namespace quern::kernels {

inline constexpr std::size_t kMaxCandidates = 4;

/// Everything about an array that its chunks share.
struct ChunkRules {
  Element element = Element::f32;
  QuantizerKind quantizer = QuantizerKind::absolute;
  TileShape tile = TileShape::plane;
  std::array<Predictor, kMaxCandidates>
      candidates{};           ///< tried by the encoder in this order; the first of the cheapest wins
  std::uint8_t reserved = 0;  ///< rules are copied as words: no byte of them is left undefined
  std::size_t candidate_count = 0;
  QuantizerParams params;
};

/// Tiles a chunk is cut into along each axis.
[[gnu::always_inline]] constexpr std::array<std::uint64_t, 3> tile_counts(const ChunkBox& box, TileShape shape) {
  const auto t = tile_extents(shape);
  return {(box.extents[0] + t[0] - 1) / t[0], (box.extents[1] + t[1] - 1) / t[1], (box.extents[2] + t[2] - 1) / t[2]};
}

/// Largest stored form of a chunk of that many tiles, slack included.
[[gnu::always_inline]] constexpr std::size_t max_lorenzo_chunk_bytes(Element element, std::size_t tiles) {
  const std::size_t word_bits = element_bytes(element) == 8 ? 64 : 32;
  const std::size_t signs = 1 + 128;
  const std::size_t exceptions = 4 + 128 + 256 * element_bytes(element);
  return 1 + tiles * (16 + signs + exceptions + word_bits * 128) + 128;
}

}  // namespace quern::kernels

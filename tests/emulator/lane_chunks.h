// A whole chunk through the code that warps run, on the emulator: what the CUDA kernels do between their launches.
// Compiled once for all tests: with every tile shape and element width it takes a minute.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/lorenzo/warp/encode.h"
#include "tests/emulator/lane_emulator.h"

namespace quern::testing {

/// Buffers of a chunk's tiles, watched and full of noise.
template <class Buffer>
std::vector<Buffer> noisy_buffers(std::size_t tiles) {
  std::vector<Buffer> buffers(tiles);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(buffers.data());
  EmulatorState& state = EmulatorState::instance();
  for (std::size_t i = 0; i < tiles * sizeof(Buffer); ++i) bytes[i] = static_cast<std::uint8_t>(state.random());
  state.watch(bytes, tiles * sizeof(Buffer));
  return buffers;
}

/// Calls f for a tile shape and an element width.
template <class F>
auto with_lane_code(const kernels::ChunkRules& rules, F&& f) {
  using kernels::TileShape;
  const auto with_shape = [&]<class Bits>() {
    switch (rules.tile) {
      case TileShape::line: return f.template operator()<TileShape::line, Bits>();
      case TileShape::plane: return f.template operator()<TileShape::plane, Bits>();
      case TileShape::block: break;
    }
    return f.template operator()<TileShape::block, Bits>();
  };
  switch (kernels::element_bytes(rules.element)) {
    case 1: return with_shape.template operator()<std::uint8_t>();
    case 2: return with_shape.template operator()<std::uint16_t>();
    case 4: return with_shape.template operator()<std::uint32_t>();
    default: return with_shape.template operator()<std::uint64_t>();
  }
}

/// The bytes of the chunk of `box` at `in`.
std::vector<std::uint8_t> encode_chunk_on_lanes(const kernels::ChunkRules& rules, const void* in,
                                                const kernels::ChunkBox& box);
/// What encoding says of the first tile of the box.
kernels::LaneTileInfo encode_tile_on_lanes(const kernels::ChunkRules& rules, const void* in,
                                           const kernels::ChunkBox& box);
/// Decodes the chunk into `out`; false when its bytes are refused.
bool decode_chunk_on_lanes(const kernels::ChunkRules& rules, std::span<const std::uint8_t> in, void* out,
                           const kernels::ChunkBox& box);

}  // namespace quern::testing

// What an encoder notes of a tile whose payload waits in memory of its own until the chunk's tiles are joined.
#pragma once

#include <cstdint>

#include "kernels/lorenzo/tile_code.h"

namespace quern::kernels {

/// Payloads wait where the tile's values would: a chunk is stored as its values unless it takes fewer bytes than they.
inline constexpr std::uint32_t kTileSlotBytes = 4 * kTileElems;

struct alignas(16) TileRecord {
  std::uint32_t seed = 0;     ///< code of element 0, 32 bits of it
  std::uint16_t payload = 0;  ///< bytes
  std::uint8_t planes = 0;
  std::uint8_t dense = 0;
  Predictor predictor = Predictor::none;
  std::uint8_t refused = 0;      ///< not 0: another encoder has to code the chunk
  std::uint8_t equal_pairs = 0;  ///< of the scan of its segment (kernels/mask/scan.h), at most 124
  std::uint8_t special = 0;      ///< not 0: a declared fill value is there, which is another encoder's work too
  std::uint32_t unused = 0;

  [[gnu::always_inline]] constexpr TileHead head() const {
    TileHead head;
    head.seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(seed)));
    head.payload = payload;
    head.planes = planes;
    head.dense = dense;
    head.predictor = predictor;
    return head;
  }
};
static_assert(sizeof(TileRecord) == 16);

}  // namespace quern::kernels

// What an encoder notes of a tile whose payload waits in memory of its own until the chunk's tiles are joined.
#pragma once

#include <cstdint>

#include "kernels/common/element_type.h"
#include "kernels/lorenzo/tile_code.h"

namespace quern::kernels {

/// Payloads wait where the tile's values would: a chunk is stored as its values unless it takes fewer bytes than they.
[[gnu::always_inline]] constexpr std::uint32_t tile_slot_bytes(Element element) {
  return static_cast<std::uint32_t>(element_bytes(element)) * kTileElems;
}

struct alignas(16) TileRecord {
  std::uint32_t seed = 0;     ///< code of element 0, its low word
  std::uint16_t payload = 0;  ///< bytes
  std::uint8_t planes = 0;
  std::uint8_t dense = 0;
  Predictor predictor = Predictor::none;
  std::uint8_t refused = 0;      ///< not 0: another encoder has to code the chunk
  std::uint8_t equal_pairs = 0;  ///< of the scan of its segment (kernels/mask/scan.h), at most 124
  std::uint8_t special = 0;      ///< not 0: a declared fill value is there, which is another encoder's work too
  std::uint32_t seed_high = 0;

  [[gnu::always_inline]] constexpr TileHead head() const {
    TileHead head;
    head.seed = seed | static_cast<std::uint64_t>(seed_high) << 32;
    head.payload = payload;
    head.planes = planes;
    head.dense = dense;
    head.predictor = predictor;
    return head;
  }
};
static_assert(sizeof(TileRecord) == 16);

}  // namespace quern::kernels

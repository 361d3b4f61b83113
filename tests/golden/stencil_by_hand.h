// Chunks of the stencil codec written by hand: for what no encoder writes, and for streams that no encoder changes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/memory.h>

#include "tests/golden/golden_cases.h"

namespace quern {
class BitWriter;
}

namespace quern::golden {

inline constexpr unsigned kRasterMode = 2;
inline constexpr unsigned kLevelsMode = 3;
inline constexpr unsigned kLatticeMode = 5;
inline constexpr unsigned kPrequantizedMode = 6;

/// A stored weight of a class: its order and it alone, the others 0.
struct StoredWeights {
  unsigned order = 0;
  std::size_t count = 0;
  std::uint64_t first_zigzag = 0;
};

/// Distributions of context levels, all alike, of shape and scale 0.
struct StoredDistributions {
  unsigned first_level = 10;
  unsigned last_level = 10;
  unsigned tokens = 1;
  unsigned zero = 0;  ///< if there are two tokens or more
};
void put_distributions(BitWriter& bits, const StoredDistributions& distributions);

/// What a chunk stores, in the order in which it does; whole as it is.
struct StoredChunk : StoredDistributions {
  unsigned mode = kRasterMode;
  double base = 3;
  double step = 0.5;
  unsigned value_bits = 4;
  unsigned weight_bits = 12;
  unsigned lane_bits = 0;
  unsigned mean = 0;
  unsigned border = 0;
  unsigned tightening = 0;
  unsigned masked = 0;
  std::optional<StoredWeights> weights;  ///< of the first class that there is: the first row's, or level 2's
  unsigned top_kind = 0;                 ///< of level 3's predictor, its only point
  unsigned kind = 0;                     ///< of level 2's
  std::uint64_t context_constant = 40;
  std::size_t cut = 0;  ///< bytes that the model lacks; nothing follows then
  Vector<std::uint8_t> exceptions{0};
  Vector<std::uint8_t> sections{0};  ///< in levels: their number and sizes
  Vector<std::uint8_t> lane_sizes;   ///< in levels: lane bits, too
  Vector<std::uint8_t> lanes{0, 0, 1, 0};
};

/// The chunk with its mode.
Vector<std::uint8_t> chunk_bytes(const StoredChunk& chunk);

/// A lane of residuals that share one distribution, that of shape and scale 0.
Vector<std::uint8_t> lane_of(std::span<const std::int32_t> residuals, unsigned tokens, unsigned zero);

/// The stream, of a single chunk and without a mask, with another chunk in its place.
Vector<std::uint8_t> with_chunk(const Vector<std::uint8_t>& stream, const Vector<std::uint8_t>& chunk);
/// The same for the only stream of a file.
GoldenFile with_chunk(GoldenFile file, const Vector<std::uint8_t>& chunk);

}  // namespace quern::golden

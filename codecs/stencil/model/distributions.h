// Stored form of the distributions of context levels.
#pragma once

#include <quern/status.h>

#include "codecs/stencil/model/model.h"
#include "libcompress/format/bit_stream.h"

namespace quern::codec::stencil {

inline constexpr unsigned kTokenBits = 7;

inline void write_distributions(const ChunkModel& model, BitWriter& writer) {
  std::size_t first = 0;
  while (first + 1 < kLevels && model.levels[first].tokens == 0) ++first;
  std::size_t last = kLevels - 1;
  while (last > first && model.levels[last].tokens == 0) --last;
  writer.put(first, 6);
  writer.put(last, 6);
  for (std::size_t l = first; l <= last; ++l) {
    const kernels::ResidualModel& level = model.levels[l];
    writer.put(level.tokens, kTokenBits);
    if (level.tokens < 2) continue;
    writer.put(level.zero, kernels::kFrequencySumBits);
    if (level.tokens < 3) continue;
    writer.put(level.shape, 3);
    writer.put(level.scale, 8);
  }
}

inline Status read_distributions(BitReader& reader, ChunkModel& model) {
  const std::size_t first = reader.get(6);
  const std::size_t last = reader.get(6);
  for (std::size_t l = first; l <= last; ++l) {
    kernels::ResidualModel& level = model.levels[l];
    level.tokens = static_cast<std::uint8_t>(reader.get(kTokenBits));
    if (level.tokens > kernels::kResidualTokens)
      return Status(StatusCode::corrupt, "stencil: a context has too many tokens");
    if (level.tokens < 2) continue;
    level.zero = static_cast<std::uint16_t>(reader.get(kernels::kFrequencySumBits));
    if (level.zero == 0 || level.zero + level.tokens - 1u > kernels::kFrequencySum)
      return Status(StatusCode::corrupt, "stencil: frequencies of a context do not add up");
    if (level.tokens < 3) continue;
    level.shape = static_cast<std::uint8_t>(reader.get(3));
    level.scale = static_cast<std::uint8_t>(reader.get(8));
  }
  return {};
}

}  // namespace quern::codec::stencil

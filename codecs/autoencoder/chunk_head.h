// The first fields of a chunk of blocks.
#pragma once

#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/autoencoder/block_numbers.h"
#include "codecs/autoencoder/prepared_model.h"
#include "coding/distributions.h"
#include "coding/value_format.h"

namespace quern::codec::autoencoder {

struct ChunkHead {
  coding::ValueFormat format{0, 0, kFractionBits};
  bool masked = false;         ///< the chunk has special elements
  bool has_residuals = false;  ///< some code is not 0
  unsigned stream_bits = 0;    ///< of residuals
  NetworkScale networks;
  coding::Distributions numbers{};    ///< of the numbers of blocks
  coding::Distributions residuals{};  ///< of codes
};

/// Appends it. May throw std::bad_alloc.
void write_head(const ChunkHead& head, Vector<std::uint8_t>& out);
/// Reads it and moves `in` behind it; `corrupt` when a number is out of range.
Result<ChunkHead> read_head(std::span<const std::uint8_t>& in);

}  // namespace quern::codec::autoencoder
